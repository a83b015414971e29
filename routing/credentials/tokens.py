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
# Ours have about 500; longer values are not parsed.
MAX_TOKEN_CHARACTERS = 2_000
RETENTION_AFTER_EXPIRY = timedelta(days=1)

# Without `=`, which would verify as well: a token has one spelling only.
_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class TokenDenied(Exception):  # noqa: N818 -- its message is for the caller
    """No token is minted: the user may not have one, or not for that long."""


class InvalidToken(Exception):  # noqa: N818
    """The value was not signed here."""


@dataclass(frozen=True, slots=True)
class MintedToken:
    jti: uuid.UUID
    expires_at: datetime
    token: str = field(repr=False)

    def as_json(self) -> dict[str, str]:
        """The answer of the route and the command, which show the token this once."""
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
    """Mint a token for the project, by default the user's own. The caller has to check that the user may use it.

    Raises TokenDenied, and SecretError when no signing key can be used.
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
    """The claims of a token that was signed here. Expiry and revocation are not checked. Raises InvalidToken."""
    if len(value) > MAX_TOKEN_CHARACTERS or not _TOKEN_PATTERN.fullmatch(value):
        raise InvalidToken("not the form of a token")
    try:
        payload = jwt.decode(
            value,
            _public_key_for(value),
            algorithms=[ALGORITHM],
            issuer=ISSUER,
            # Expiry is checked by the token's row, with the database's clock.
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
    """Revoke a token. Returns 1, or 0 for one that is unknown, expired, revoked, or not that user's."""
    tokens = InferenceToken.objects.active(now).filter(jti=jti)
    return (tokens if user is None else tokens.filter(user=user)).update(revoked_at=now)


def revoke_all_tokens(user: User, *, now: datetime) -> int:
    """Revoke all tokens of the user, one that is being minted now included. Returns how many were in use."""
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(token_version=F("token_version") + 1)
        return InferenceToken.objects.active(now).filter(user=user).update(revoked_at=now)


def delete_expired_tokens(*, now: datetime) -> None:
    """Delete the rows of expired tokens, and the signing keys that verify none any more.

    A user's last row is kept: it shows that the user may have submitted something and must not be pruned.
    """
    newer = InferenceToken.objects.filter(user=OuterRef("user"), jti__gt=OuterRef("jti"))
    InferenceToken.objects.filter(Exists(newer), expires_at__lt=now - RETENTION_AFTER_EXPIRY).delete()
    delete_retired_keys(now=now)


def _public_key_for(value: str) -> Ed25519PublicKey:
    """Choose the key by the unverified header: its `kid` can only select one of our own keys."""
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
        # Read anew: all tokens may have been revoked since the user was loaded.
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
