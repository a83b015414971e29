"""The credential that a request came with: what is known of it, and who may create with it."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from relaybatch.errors import Forbidden, Unauthenticated
from routing.keys import hash_of
from routing.models import InferenceToken, RelayKey
from routing.tokens import Claims, TokenInvalid, verify

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from routing.models import Policy, Project, ServiceAccount, User

REFUSALS = {
    "no_policy": "this credential has no policy: ask an operator for one",
    "policy_disabled": "the policy of this credential is disabled",
    "project_disabled": "the project of this credential is disabled",
    "principal_disabled": "the service account or user of this credential is disabled",
}


@dataclass(frozen=True, slots=True)
class Credential:
    """`owner`: the relay key's hash, or `user:<id>`. `policy_id`: the key's own policy, else its principal's.

    `kind` is `key` or `token`; `id` the key's id or the token's `jti`. `principal_kind` is `serviceaccount` or
    `user`. `refusal`: why it may not create anything now (`no_policy`, `policy_disabled`, `project_disabled`,
    `principal_disabled`), empty when it may; reading what exists is always allowed.
    """

    owner: str
    kind: str
    id: str
    principal_kind: str
    principal_id: str
    policy_id: uuid.UUID | None
    project_id: uuid.UUID | None
    team_id: uuid.UUID | None
    refusal: str = ""

    @property
    def is_authenticated(self) -> bool:
        """For DRF, where a credential stands in the place of a user."""
        return True


@dataclass(frozen=True, slots=True)
class KeyState:
    """What decides whether a relay key works, read from its row."""

    enabled: bool
    expires_at: datetime | None
    revoked_at: datetime | None
    key_hash: str = field(repr=False)
    previous_key_hash: str = field(repr=False)
    grace_until: datetime | None

    def fault(self, *, key_hash: str, now: datetime) -> str:
        """Why the value with this hash does not work now: `revoked`, `disabled`, `expired`, `rotated`, or empty."""
        if self.revoked_at is not None:
            return "revoked"
        if not self.enabled:
            return "disabled"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "" if self._is_valid(key_hash=key_hash, now=now) else "rotated"

    def _is_valid(self, *, key_hash: str, now: datetime) -> bool:
        if hmac.compare_digest(key_hash, self.key_hash):
            return True
        in_grace = self.grace_until is not None and now < self.grace_until
        return hmac.compare_digest(key_hash, self.previous_key_hash) and in_grace


@dataclass(frozen=True, slots=True)
class TokenState:
    """What decides whether an inference token works. `version`: its own; `current_version`: its user's now."""

    expires_at: datetime
    revoked_at: datetime | None
    version: int
    current_version: int

    def fault(self, *, now: datetime) -> str:
        """Why the token does not work now: `revoked`, `expired`, or empty."""
        if self.revoked_at is not None or self.version != self.current_version:
            return "revoked"
        return "expired" if self.expires_at <= now else ""


def authenticate(value: str, *, now: datetime) -> Credential:
    """The credential that the value is. Raises Unauthenticated with the code of what is wrong with it."""
    return _by_token(value, now=now) if is_token(value) else _by_relay_key(value, now=now)


def is_token(value: str) -> bool:
    """By its form alone: three parts, of which the first is the base64 of a JSON object. All else is a key."""
    return value.startswith("ey") and value.count(".") == 2


def require_creation(credential: Credential) -> None:
    """Before anything is created. Raises Forbidden with the credential's refusal as its code."""
    if credential.refusal:
        raise Forbidden(REFUSALS[credential.refusal], code=credential.refusal)


def unknown_credential() -> Unauthenticated:
    return Unauthenticated("the credential is not known here", code="invalid_credential")


def _by_relay_key(value: str, *, now: datetime) -> Credential:
    key_hash = hash_of(value)
    key = RelayKey.objects.presented(key_hash).with_caller().first()
    if key is None:
        raise unknown_credential()
    _require_no_fault(_state(key).fault(key_hash=key_hash, now=now))
    principal = _principal(key)
    return _credential(
        owner=key_hash,
        kind="key",
        identifier=str(key.id),
        principal=principal,
        policy=key.policy or principal.policy,
        project=principal.project,
    )


def _by_token(value: str, *, now: datetime) -> Credential:
    try:
        claims = verify(value, now=now)
    except TokenInvalid:
        raise unknown_credential() from None
    token = InferenceToken.objects.filter(jti=claims.jti).with_caller().first()
    if token is None:
        # Rows of expired tokens are removed after a while, and with a user all of theirs.
        _require_no_fault("expired" if claims.exp <= now.timestamp() else "")
        raise unknown_credential()
    _require_no_fault(_token_state(token).fault(now=now))
    return _token_credential(token, claims)


def _require_no_fault(fault: str) -> None:
    if fault:
        words = "has been rotated out" if fault == "rotated" else f"is {fault}"
        raise Unauthenticated(f"the credential {words}", code=f"credential_{fault}")


def _token_state(token: InferenceToken) -> TokenState:
    return TokenState(
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
        version=token.version,
        current_version=token.user.token_version,
    )


def _token_credential(token: InferenceToken, claims: Claims) -> Credential:
    """Of the project that the token names, which may be gone, and the policy that its user has now."""
    credential = _credential(
        owner=f"user:{token.user_id}",
        kind="token",
        identifier=str(token.jti),
        principal=token.user,
        policy=token.user.policy,
        project=token.project,
    )
    if token.project is None:
        refusal = credential.refusal or "project_disabled"
        return replace(credential, project_id=claims.prj, refusal=refusal)
    return credential


def _state(key: RelayKey) -> KeyState:
    return KeyState(
        enabled=key.enabled,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        key_hash=key.key_hash,
        previous_key_hash=key.previous_key_hash,
        grace_until=key.grace_until,
    )


def _credential(
    *,
    owner: str,
    kind: str,
    identifier: str,
    principal: ServiceAccount | User,
    policy: Policy | None,
    project: Project | None,
) -> Credential:
    return Credential(
        owner=owner,
        kind=kind,
        id=identifier,
        principal_kind=principal._meta.model_name or "",
        principal_id=str(principal.pk),
        policy_id=policy.id if policy else None,
        project_id=project.id if project else None,
        team_id=project.team_id if project else None,
        refusal=_refusal(principal=principal, project=project, policy=policy),
    )


def _principal(key: RelayKey) -> ServiceAccount | User:
    principal = key.service_account or key.user
    if principal is None:  # the row's constraint forbids it
        raise unknown_credential()
    return principal


def _refusal(*, principal: ServiceAccount | User, project: Project | None, policy: Policy | None) -> str:
    if not principal.may_call:
        return "principal_disabled"
    if project is not None and not (project.enabled and project.team.enabled):
        return "project_disabled"
    if policy is None:
        return "no_policy"
    return "" if policy.enabled else "policy_disabled"
