"""Whether a call that was accepted earlier may still be made: its credential, principal, project and policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connection
from django.utils import timezone

from routing.credentials import KeyState
from routing.failures import CallFailed, Failure
from routing.fresh import Fresh

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from routing.call import Caller


@dataclass(frozen=True, slots=True)
class Standing:
    """Names for the usage event, as they are now; empty where there is none."""

    policy: str
    project: str
    team: str


@dataclass(frozen=True, slots=True)
class _Rows:
    """What one query found; None where a row is gone (or was never asked for)."""

    key: KeyState | None
    principal_enabled: bool
    policy: str | None
    policy_enabled: bool | None
    project: str | None
    project_enabled: bool | None
    team: str | None
    team_enabled: bool | None


_Key = tuple[str, "uuid.UUID", "uuid.UUID | None", "uuid.UUID | None"]
_rows: Fresh[_Key, _Rows] = Fresh(seconds=0.5)

# The policy, project and team are those recorded when the call was asked for, whatever the key has now.
_QUERY = """
SELECT key.enabled, key.expires_at, key.revoked_at, key.key_hash, key.previous_key_hash, key.grace_until,
       COALESCE(account.enabled, person.is_active, false),
       policy.name, policy.enabled, project.name, project.enabled, team.name, team.enabled
  FROM (VALUES (1)) AS always
  LEFT JOIN routing_relaykey AS key ON key.id = %(key)s
  LEFT JOIN routing_serviceaccount AS account ON account.id = key.service_account_id
  LEFT JOIN routing_user AS person ON person.id = key.user_id
  LEFT JOIN routing_policy AS policy ON policy.id = %(policy)s
  LEFT JOIN routing_project AS project ON project.id = %(project)s
  LEFT JOIN routing_team AS team ON team.id = %(team)s
"""


def recheck(caller: Caller, *, now: datetime | None = None) -> Standing:
    """Raises CallFailed with why the caller may no longer make this call.

    Rows may be half a second old; what a clock decides (expiry, grace) is decided at each call.
    """
    rows = _rows.get(_cache_key(caller), lambda: _load(caller))
    if rows.key is None:
        raise _failed("credential_deleted", "the credential that asked for this no longer exists")
    _check_key(rows.key, owner=caller.owner, now=now or timezone.now())
    if not rows.principal_enabled:
        raise _failed("principal_disabled", "the principal (service account or user) is disabled")
    _check_project(rows, caller)
    _check_policy(rows)
    return _standing(rows)


def names_of(caller: Caller) -> Standing:
    """The names as they are now, whether or not the caller may still call."""
    return _standing(_rows.get(_cache_key(caller), lambda: _load(caller)))


def forget() -> None:
    """Drop what is kept, so that the next answer is read from the rows."""
    _rows.clear()


def _check_key(key: KeyState, *, owner: str, now: datetime) -> None:
    fault = key.fault(key_hash=owner, now=now)
    if fault:
        words = "was rotated out" if fault == "rotated" else f"is {fault}"
        raise _failed(f"credential_{fault}", f"the credential that asked for this {words}")


def _check_project(rows: _Rows, caller: Caller) -> None:
    if caller.project_id is not None and not rows.project_enabled:
        raise _failed(
            "project_disabled", "the project is disabled" if rows.project else "the project is gone"
        )
    if caller.team_id is not None and not rows.team_enabled:
        raise _failed("project_disabled", "the team of the project is disabled or gone")


def _check_policy(rows: _Rows) -> None:
    if rows.policy is None:
        raise _failed("policy_deleted", "the policy that this was accepted under no longer exists")
    if not rows.policy_enabled:
        raise _failed("policy_disabled", f"the policy {rows.policy} is disabled")


def _cache_key(caller: Caller) -> _Key:
    return (
        f"{caller.credential_kind}:{caller.credential_id}",
        caller.policy_id,
        caller.project_id,
        caller.team_id,
    )


def _standing(rows: _Rows) -> Standing:
    return Standing(policy=rows.policy or "", project=rows.project or "", team=rows.team or "")


def _load(caller: Caller) -> _Rows:
    with connection.cursor() as cursor:
        cursor.execute(
            _QUERY,
            {
                # A credential of a kind that this release does not know works no more than a deleted one.
                "key": caller.credential_id if caller.credential_kind == "key" else None,
                "policy": caller.policy_id,
                "project": caller.project_id,
                "team": caller.team_id,
            },
        )
        row = cursor.fetchone()
    key_hash = row[3]
    return _Rows(None if key_hash is None else KeyState(*row[:6]), *row[6:])


def _failed(code: str, message: str) -> CallFailed:
    return CallFailed(Failure(code=code, message=message))
