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

# Longer than any token lives, with room for a token that was being signed while its key was retired.
RETENTION_AFTER_RETIREMENT = timedelta(hours=25)


@dataclass(frozen=True, slots=True)
class Signer:
    kid: str
    private_key: Ed25519PrivateKey = field(repr=False)


def current_signer() -> Signer:
    """The key that signs now; the first one is made here. Processes that ask at once get the same one.

    Raises SecretError when it cannot be read, or none can be stored.
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
    """From now on another key signs; returns how many were retired by it.

    What the retired key has signed stays valid. Its private half is dropped, so that one which can no longer be
    decrypted is done with as well. Raises SecretError.
    """
    with transaction.atomic():
        retired = SigningKey.objects.filter(retired_at=None).update(
            retired_at=now, private_key_encrypted=None
        )
        _create_key()
    return retired


def find_public_key(kid: object) -> Ed25519PublicKey | None:
    """None for a `kid` that no key has, whatever it is made of."""
    try:
        key = SigningKey.objects.filter(kid=uuid.UUID(str(kid))).first()
    except ValueError:
        return None
    return None if key is None else Ed25519PublicKey.from_public_bytes(bytes(key.public_key))


def delete_retired_keys(*, now: datetime) -> None:
    """Those whose tokens have all expired."""
    SigningKey.objects.filter(retired_at__lt=now - RETENTION_AFTER_RETIREMENT).delete()


def _create_key() -> None:
    """Unless one signs already: a constraint lets one do so, and whoever comes second leaves it at that."""
    private = Ed25519PrivateKey.generate()
    key = SigningKey(
        public_key=private.public_key().public_bytes_raw(),
        private_key_encrypted=encrypt(private.private_bytes_raw()),
    )
    SigningKey.objects.bulk_create([key], ignore_conflicts=True)
