"""The credential of a request: who calls, and whether the credential may create anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from relaybatch.db.clock import database_now
from relaybatch.http.errors import Forbidden, Unauthenticated
from routing.credentials.queries import find_key, find_token
from routing.credentials.relay_keys import hash_value
from routing.credentials.tokens import InvalidToken, verify_token

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from routing.credentials.queries import CallerRow

DENIAL_MESSAGES = {
    "no_policy": "this credential has no policy: ask an operator for one",
    "policy_disabled": "the policy of this credential is disabled",
    "project_disabled": "the project of this credential is disabled",
    "principal_disabled": "the service account or user of this credential is disabled",
}


@dataclass(frozen=True, slots=True)
class Credential:
    """`owner`: the relay key's hash, or `user:<id>`. `policy_id`: the key's own policy, else its principal's.

    `kind` is `key` or `token`; `id` the key's id or the token's `jti`. `principal_kind` is `serviceaccount` or
    `user`. `denial_code`: why it may not create anything now (`no_policy`, `policy_disabled`, `project_disabled`,
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
    denial_code: str = ""

    @property
    def is_authenticated(self) -> bool:
        """DRF reads it from `request.user`, which is the credential here."""
        return True


def authenticate(value: str, *, now: datetime | None = None) -> Credential:
    """Authenticate a presented value. Raises Unauthenticated, whose code names the problem.

    `now`: the database's clock when left out, never this machine's.
    """
    return _by_token(value, now=now) if is_token(value) else _by_relay_key(value, now=now)


def is_token(value: str) -> bool:
    """Whether the value has the form of a token: three parts, the first beginning like a JSON object in base64.

    Every other value is taken for a relay key.
    """
    return value.startswith("ey") and value.count(".") == 2


def check_may_create(credential: Credential) -> None:
    """Raise Forbidden, with `denial_code` as its code, when the credential may not create anything."""
    if credential.denial_code:
        raise Forbidden(DENIAL_MESSAGES[credential.denial_code], code=credential.denial_code)


def unknown_credential() -> Unauthenticated:
    return Unauthenticated("the credential is not known here", code="invalid_credential")


def _by_relay_key(value: str, *, now: datetime | None) -> Credential:
    key_hash = hash_value(value)
    rows = find_key(key_hash)
    if rows is None:
        raise unknown_credential()
    key_id, state, caller = rows
    _raise_if_invalid(state.invalid_reason(key_hash=key_hash, now=now or caller.read_at))
    return _credential(caller, owner=key_hash, kind="key", identifier=key_id)


def _by_token(value: str, *, now: datetime | None) -> Credential:
    try:
        claims = verify_token(value)
    except InvalidToken:
        raise unknown_credential() from None
    rows = find_token(claims.jti)
    if rows is None:
        # The rows of expired tokens are deleted after a while, and a user's rows with the user.
        _raise_if_invalid("expired" if claims.exp <= (now or database_now()).timestamp() else "")
        raise unknown_credential()
    state, caller = rows
    _raise_if_invalid(state.invalid_reason(now=now or caller.read_at))
    credential = _credential(caller, owner=f"user:{caller.principal_id}", kind="token", identifier=claims.jti)
    if caller.project_id is None:  # deleted since
        denial_code = credential.denial_code or "project_disabled"
        return replace(credential, project_id=claims.prj, denial_code=denial_code)
    return credential


def _raise_if_invalid(reason: str) -> None:
    if reason:
        message = "has been rotated out" if reason == "rotated" else f"is {reason}"
        raise Unauthenticated(f"the credential {message}", code=f"credential_{reason}")


def _credential(caller: CallerRow, *, owner: str, kind: str, identifier: uuid.UUID) -> Credential:
    return Credential(
        owner=owner,
        kind=kind,
        id=str(identifier),
        principal_kind=caller.principal_kind,
        principal_id=caller.principal_id,
        policy_id=caller.policy_id,
        project_id=caller.project_id,
        team_id=caller.team_id,
        denial_code=_denial_code(caller),
    )


def _denial_code(caller: CallerRow) -> str:
    if not caller.principal_enabled:
        return "principal_disabled"
    if caller.project_enabled is False:
        return "project_disabled"
    if caller.policy_enabled is None:
        return "no_policy"
    return "" if caller.policy_enabled else "policy_disabled"
