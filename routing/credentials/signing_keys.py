"""The Ed25519 keys that sign inference tokens. The private half is stored encrypted under RELAY_MASTER_KEY."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.db import transaction

from routing.models import SigningKey
from routing.secrets.encryption import SecretError, decrypt, encrypt

if TYPE_CHECKING:
    from datetime import datetime

# The longest time to live of a token, and an hour for one that was being signed while its key was retired.
RETENTION_AFTER_RETIREMENT = timedelta(hours=25)


@dataclass(frozen=True, slots=True)
class Signer:
    kid: str
    private_key: Ed25519PrivateKey = field(repr=False)


def current_signer() -> Signer:
    """The key that signs now. The first one is created here; processes that call at the same time get the same one.

    Raises SecretError when the key cannot be decrypted, or none can be stored.
    """
    key = SigningKey.objects.filter(retired_at=None).first()
    if key is None:
        _create_key()
        key = SigningKey.objects.get(retired_at=None)
    try:
        private = decrypt(bytes(key.private_key_encrypted or b""))
    except SecretError as error:
        raise type(error)(f"signing key {key.kid}: {error}") from None
    return Signer(kid=str(key.kid), private_key=Ed25519PrivateKey.from_private_bytes(private))


def rotate_signing_key(*, now: datetime) -> int:
    """Retire the current key and create another. Returns how many keys were retired.

    Tokens that the retired key signed stay valid. Its private half is deleted without being decrypted, so that a key
    which can no longer be decrypted can be retired as well. Raises SecretError.
    """
    with transaction.atomic():
        # Retired first: a constraint allows one key that is not retired.
        retired = SigningKey.objects.filter(retired_at=None).update(
            retired_at=now, private_key_encrypted=None
        )
        _create_key()
    return retired


def find_public_key(kid: object) -> Ed25519PublicKey | None:
    """Find the public key by its `kid`; None when there is none, whatever value `kid` has."""
    try:
        key = SigningKey.objects.filter(kid=uuid.UUID(str(kid))).first()
    except ValueError:
        return None
    return None if key is None else Ed25519PublicKey.from_public_bytes(bytes(key.public_key))


def delete_retired_keys(*, now: datetime) -> None:
    """Delete the retired keys whose tokens have all expired."""
    SigningKey.objects.filter(retired_at__lt=now - RETENTION_AFTER_RETIREMENT).delete()


def _create_key() -> None:
    """Create a key unless there is a current one: a constraint allows one, and a second insert is ignored."""
    private = Ed25519PrivateKey.generate()
    key = SigningKey(
        public_key=private.public_key().public_bytes_raw(),
        private_key_encrypted=encrypt(private.private_bytes_raw()),
    )
    SigningKey.objects.bulk_create([key], ignore_conflicts=True)
