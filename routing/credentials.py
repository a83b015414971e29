"""The credential that a request came with: what is known of it, and who may create with it."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relaybatch.errors import Forbidden, Unauthenticated
from routing.keys import hash_of
from routing.models import RelayKey

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


def authenticate(value: str, *, now: datetime) -> Credential:
    """The credential that the value is. Raises Unauthenticated with the code of what is wrong with it."""
    if is_token(value):
        # Nothing signs tokens here, so none can be valid.
        raise unknown_credential()
    return _by_relay_key(value, now=now)


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
    fault = _state(key).fault(key_hash=key_hash, now=now)
    if fault:
        words = "has been rotated out" if fault == "rotated" else f"is {fault}"
        raise Unauthenticated(f"the credential {words}", code=f"credential_{fault}")
    return _credential(key, owner=key_hash)


def _state(key: RelayKey) -> KeyState:
    return KeyState(
        enabled=key.enabled,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        key_hash=key.key_hash,
        previous_key_hash=key.previous_key_hash,
        grace_until=key.grace_until,
    )


def _credential(key: RelayKey, *, owner: str) -> Credential:
    principal = _principal(key)
    policy, project = key.policy or principal.policy, principal.project
    return Credential(
        owner=owner,
        kind="key",
        id=str(key.id),
        principal_kind="user" if key.user else "serviceaccount",
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
