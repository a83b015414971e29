"""Create, rotate, revoke, disable and enable relay keys. A value is returned once; only its hash is stored."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import F

from routing.models import RelayKey, ServiceAccount, User

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from routing.models import Policy

VALUE_PREFIX = "sk-rb-"
VISIBLE_PREFIX_LENGTH = len(VALUE_PREFIX) + 6
MAX_GRACE_SECONDS = 366 * 86_400


class RelayKeyError(Exception):
    """The key does not exist, or is revoked."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    id: uuid.UUID
    prefix: str
    value: str = field(repr=False)


def create_key(
    *, principal: ServiceAccount | User, policy: Policy | None = None, expires_at: datetime | None = None
) -> IssuedKey:
    """Create a key of a service account or a user. Without a policy of its own it has its principal's."""
    value = generate_value()
    key = RelayKey.objects.create(
        service_account=principal if isinstance(principal, ServiceAccount) else None,
        user=principal if isinstance(principal, User) else None,
        policy=policy,
        key_hash=hash_value(value),
        prefix=value[:VISIBLE_PREFIX_LENGTH],
        expires_at=expires_at,
    )
    return IssuedKey(id=key.id, prefix=key.prefix, value=value)


def rotate_key(*, key_id: uuid.UUID, grace_seconds: int = 0, now: datetime) -> IssuedKey:
    """Give the key a new value. The previous one stays valid for the grace period, older ones do not.

    What a value submitted can be read by that value alone, also after the rotation. Raises RelayKeyError.
    """
    value = generate_value()
    rotated = RelayKey.objects.filter(id=key_id, revoked_at=None).update(
        previous_key_hash=F("key_hash"),
        grace_until=now + timedelta(seconds=grace_seconds),
        key_hash=hash_value(value),
        prefix=value[:VISIBLE_PREFIX_LENGTH],
    )
    if not rotated:
        raise _key_error(key_id)
    return IssuedKey(id=key_id, prefix=value[:VISIBLE_PREFIX_LENGTH], value=value)


def revoke_key(*, key_id: uuid.UUID, now: datetime) -> None:
    """Revoke the key for good. Repeating it keeps the first `revoked_at`. Raises RelayKeyError."""
    if not RelayKey.objects.filter(id=key_id, revoked_at=None).update(revoked_at=now):
        _require_exists(key_id)


def disable_key(*, key_id: uuid.UUID) -> None:
    """Disable the key until it is enabled again. Raises RelayKeyError."""
    if not RelayKey.objects.filter(id=key_id).update(enabled=False):
        raise _key_error(key_id)


def enable_key(*, key_id: uuid.UUID) -> None:
    """Enable the key. Raises RelayKeyError for a revoked one too, which would not work."""
    if not RelayKey.objects.filter(id=key_id, revoked_at=None).update(enabled=True):
        raise _key_error(key_id)


def hash_value(value: str) -> str:
    """SHA-256 in hex. Without salt, because keys are found by it; the value has 384 random bits."""
    return hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()


def generate_value() -> str:
    return VALUE_PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(48)).decode()


def _require_exists(key_id: uuid.UUID) -> None:
    if not RelayKey.objects.filter(id=key_id).exists():
        raise _key_error(key_id)


def _key_error(key_id: uuid.UUID) -> RelayKeyError:
    if RelayKey.objects.filter(id=key_id).exists():
        return RelayKeyError(f"key {key_id} is revoked: create another")
    return RelayKeyError(f"no key {key_id}")
