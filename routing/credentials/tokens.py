"""Inference tokens: short-lived JWTs (RFC 7519) of users, signed with Ed25519 (`alg` EdDSA, RFC 8037)."""

from __future__ import annotations

import re
import uuid  # noqa: TC003 -- msgspec reads the annotations
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import jwt
import msgspec
from django.db import transaction
from django.db.models import Exists, F, OuterRef

from relaybatch.ids import uuid7
from routing.credentials.signing_keys import current_signer, delete_retired_keys, find_public_key
from routing.models import InferenceToken, Project, User

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ISSUER = "relaybatch"
ALGORITHM = "EdDSA"
DEFAULT_TTL_SECONDS = 3_600
MAX_TTL_SECONDS = 86_400
# Ours have about 500; what a stranger sends is not parsed at any length.
MAX_TOKEN_CHARACTERS = 2_000
RETENTION_AFTER_EXPIRY = timedelta(days=1)

# Without `=`, which would verify as well: a token has one spelling.
_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class TokenDenied(Exception):  # noqa: N818 -- one sentence for whoever asked for the token
    """No token is minted: the user may not have one, or not for so long."""


class InvalidToken(Exception):  # noqa: N818
    """Nothing that was signed here."""


@dataclass(frozen=True, slots=True)
class MintedToken:
    jti: uuid.UUID
    expires_at: datetime
    token: str = field(repr=False)

    def as_json(self) -> dict[str, str]:
        """As a route and a command show it, this once."""
        expires_at = self.expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"token": self.token, "jti": str(self.jti), "expires_at": expires_at}


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`prj`: the project's id. `ver`: the user's `token_version`. `iat`, `exp`: seconds since 1970."""

    iss: str
    sub: Annotated[str, msgspec.Meta(pattern="^user:[0-9]{1,18}$")]
    prj: uuid.UUID
    ver: int
    jti: uuid.UUID
    iat: int
    exp: int


def mint_token(user: User, *, project: Project | None, ttl_seconds: int, now: datetime) -> MintedToken:
    """A token for the project, by default the user's own; whether the user may use it is the caller's to check.

    Raises TokenRefused, and SecretError when no signing key can be used.
    """
    project = project or user.project
    if project is None:
        raise TokenDenied(f"user {user.username!r} has no project")
    if not user.is_active:
        raise TokenDenied(f"user {user.username!r} is not active")
    if not 0 < ttl_seconds <= MAX_TTL_SECONDS:
        raise TokenDenied("ttl: expected 1s to 24h")
    row = _new_row(user, project=project, ttl_seconds=ttl_seconds, now=now)
    token = _sign(row)
    row.save(force_insert=True)
    return MintedToken(jti=row.jti, expires_at=row.expires_at, token=token)


def verify_token(value: str) -> Claims:
    """What the token says, if it was signed here. Whether it has expired or was revoked is not looked at.

    Raises TokenInvalid.
    """
    if len(value) > MAX_TOKEN_CHARACTERS or not _TOKEN_PATTERN.fullmatch(value):
        raise InvalidToken("its form is no token's")
    try:
        payload = jwt.decode(
            value,
            _public_key_for(value),
            algorithms=[ALGORITHM],
            issuer=ISSUER,
            # Times are compared with the database's clock, by the token's row.
            options={
                "require": list(Claims.__struct_fields__),
                "verify_exp": False,
                "verify_iat": False,
            },
        )
        return msgspec.convert(payload, Claims)
    except (jwt.PyJWTError, msgspec.ValidationError) as error:
        raise InvalidToken(type(error).__name__) from None


def revoke_token(*, jti: uuid.UUID, now: datetime, user: User | None = None) -> int:
    """How many were revoked: 0 for one that is unknown, expired, revoked, or not that user's."""
    tokens = InferenceToken.objects.active(now).filter(jti=jti)
    return (tokens if user is None else tokens.filter(user=user)).update(revoked_at=now)


def revoke_all_tokens(user: User, *, now: datetime) -> int:
    """All that the user has, one that is being minted right now included. How many were in use."""
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(token_version=F("token_version") + 1)
        return InferenceToken.objects.active(now).filter(user=user).update(revoked_at=now)


def delete_expired_tokens(*, now: datetime) -> None:
    """Removes rows that say no more than the tokens' own `exp`, and keys that verify nothing any more.

    A user's last row stays: it says that they may have submitted something, and must not be pruned.
    """
    newer = InferenceToken.objects.filter(user=OuterRef("user"), jti__gt=OuterRef("jti"))
    InferenceToken.objects.filter(Exists(newer), expires_at__lt=now - RETENTION_AFTER_EXPIRY).delete()
    delete_retired_keys(now=now)


def _public_key_for(value: str) -> Ed25519PublicKey:
    """By the header alone, which nobody has vouched for yet: its `kid` can only choose among our own keys."""
    key = find_public_key(jwt.get_unverified_header(value).get("kid"))
    if key is None:
        raise InvalidToken("no such kid")
    return key


def _new_row(user: User, *, project: Project, ttl_seconds: int, now: datetime) -> InferenceToken:
    issued_at = datetime.fromtimestamp(int(now.timestamp()), UTC)
    return InferenceToken(
        jti=uuid7(),
        user=user,
        project=project,
        # Not the loaded user's: all tokens may have been revoked since.
        version=User.objects.values_list("token_version", flat=True).get(pk=user.pk),
        created_at=issued_at,
        expires_at=issued_at + timedelta(seconds=ttl_seconds),
    )


def _sign(row: InferenceToken) -> str:
    signer = current_signer()
    claims = {
        "iss": ISSUER,
        "sub": f"user:{row.user_id}",
        "prj": str(row.project_id),
        "ver": row.version,
        "jti": str(row.jti),
        "iat": int(row.created_at.timestamp()),
        "exp": int(row.expires_at.timestamp()),
    }
    return jwt.encode(claims, signer.private_key, algorithm=ALGORITHM, headers={"kid": signer.kid})
