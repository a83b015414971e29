"""Recheck whether an accepted call may still be made: its credential, principal, project and policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.utils import timezone

from routing.calls.failures import CallFailed, Failure, FailureCode
from routing.credentials.validity import KeyState, TokenState
from routing.ttl_cache import TtlCache

if TYPE_CHECKING:
    import uuid
    from datetime import datetime, timedelta

    from routing.calls.call import Caller


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a project may use in a month, in nano-units. `unpriced_closes`: an unpriced call uses it up as well."""

    nanos: int
    unpriced_closes: bool = False


@dataclass(frozen=True, slots=True)
class CallerSnapshot:
    """The names for the usage event, as they are now and empty when there is none, and the project's allowance."""

    policy: str
    project: str
    team: str
    allowance: Allowance | None = None


@dataclass(frozen=True, slots=True)
class _CallerRows:
    """What one query found; None when a row is deleted, or the caller had none.

    `clock_ahead`: how far the database's clock is ahead of this machine's.
    """

    credential: KeyState | TokenState | None
    principal_exists: bool
    principal_enabled: bool
    policy: str | None
    policy_enabled: bool | None
    project: str | None
    project_enabled: bool | None
    team: str | None
    team_enabled: bool | None
    included_nanos: int | None
    unpriced_closes: bool | None
    clock_ahead: timedelta


_CacheKey = tuple[str, "uuid.UUID", "uuid.UUID | None", "uuid.UUID | None"]
CALLER_ROWS: TtlCache[_CacheKey, _CallerRows] = TtlCache(seconds=0.5)

# The policy, project and team are those recorded when the call was accepted, whatever the credential has now.
_POLICY_AND_PROJECT = """
       policy.name, policy.enabled, project.name, project.enabled, team.name, team.enabled,
       project.included_nanos, project.unpriced_closes, clock_timestamp()
  FROM (VALUES (1)) AS always
  LEFT JOIN routing_policy AS policy ON policy.id = %(policy)s
  LEFT JOIN routing_project AS project ON project.id = %(project)s
  LEFT JOIN routing_team AS team ON team.id = %(team)s
"""
_KEY_QUERY = f"""
SELECT key.enabled, key.expires_at, key.revoked_at, key.key_hash, key.previous_key_hash, key.grace_until,
       COALESCE(account.id::text, person.id::text) IS NOT NULL,
       COALESCE(account.enabled, person.is_active, false),
{_POLICY_AND_PROJECT}
  LEFT JOIN routing_relaykey AS key ON key.id = %(credential)s
  LEFT JOIN routing_serviceaccount AS account ON account.id = key.service_account_id
  LEFT JOIN routing_user AS person ON person.id = key.user_id
"""
_TOKEN_QUERY = f"""
SELECT token.expires_at, token.revoked_at, token.version, person.token_version,
       person.id IS NOT NULL, COALESCE(person.is_active, false),
{_POLICY_AND_PROJECT}
  LEFT JOIN routing_user AS person ON person.id = %(principal)s
  LEFT JOIN routing_inferencetoken AS token ON token.jti = %(credential)s AND token.user_id = person.id
"""
# The number of columns that are the credential's, in each query.
_KEY_COLUMNS, _TOKEN_COLUMNS = 6, 4


def recheck(caller: Caller, *, now: datetime | None = None) -> CallerSnapshot:
    """Raise CallFailed, with the reason, when the caller may no longer make this call.

    Rows may be half a second old. Expiry and grace are checked at each call, by the database's clock.
    """
    rows = CALLER_ROWS.get(_cache_key(caller), lambda: _load(caller))
    _check_credential(rows, caller, now=now or timezone.now() + rows.clock_ahead)
    if not rows.principal_enabled:
        raise _call_failed(
            FailureCode.PRINCIPAL_DISABLED, "the principal (service account or user) is disabled"
        )
    _check_project(rows, caller)
    _check_policy(rows)
    return _snapshot(rows)


def caller_snapshot(caller: Caller) -> CallerSnapshot:
    """The snapshot as `recheck` returns it, whether or not the caller may still call."""
    return _snapshot(CALLER_ROWS.get(_cache_key(caller), lambda: _load(caller)))


def clear_cache() -> None:
    """Clear the cache, so that the next call reads the rows."""
    CALLER_ROWS.clear()


def _check_credential(rows: _CallerRows, caller: Caller, *, now: datetime) -> None:
    match rows.credential:
        case KeyState() as key:
            reason = key.invalid_reason(key_hash=caller.owner, now=now)
        case TokenState() as token:
            reason = token.invalid_reason(now=now)
        case None if caller.credential_kind == "token" and rows.principal_exists:
            # A token's row is deleted some time after its expiry, and only then.
            reason = "expired"
        case None:
            raise _call_failed(
                FailureCode.CREDENTIAL_DELETED, "the credential that asked for this no longer exists"
            )
    if reason:
        message = "was rotated out" if reason == "rotated" else f"is {reason}"
        raise _call_failed(
            FailureCode(f"credential_{reason}"), f"the credential that asked for this {message}"
        )


def _check_project(rows: _CallerRows, caller: Caller) -> None:
    if caller.project_id is not None and not rows.project_enabled:
        raise _call_failed(
            FailureCode.PROJECT_DISABLED, "the project is disabled" if rows.project else "the project is gone"
        )
    if caller.team_id is not None and not rows.team_enabled:
        raise _call_failed(FailureCode.PROJECT_DISABLED, "the team of the project is disabled or gone")


def _check_policy(rows: _CallerRows) -> None:
    if rows.policy is None:
        raise _call_failed(
            FailureCode.POLICY_DELETED, "the policy that this was accepted under no longer exists"
        )
    if not rows.policy_enabled:
        raise _call_failed(FailureCode.POLICY_DISABLED, f"the policy {rows.policy} is disabled")


def _cache_key(caller: Caller) -> _CacheKey:
    return (
        f"{caller.credential_kind}:{caller.credential_id}",
        caller.policy_id,
        caller.project_id,
        caller.team_id,
    )


def _snapshot(rows: _CallerRows) -> CallerSnapshot:
    return CallerSnapshot(
        policy=rows.policy or "",
        project=rows.project or "",
        team=rows.team or "",
        allowance=_allowance(rows),
    )


def _allowance(rows: _CallerRows) -> Allowance | None:
    if rows.included_nanos is None:
        return None
    return Allowance(nanos=rows.included_nanos, unpriced_closes=bool(rows.unpriced_closes))


def _load(caller: Caller) -> _CallerRows:
    is_token = caller.credential_kind == "token"
    with connection.cursor() as cursor:
        cursor.execute(
            _TOKEN_QUERY if is_token else _KEY_QUERY,
            {
                # A kind of credential that this release does not know is treated like a deleted credential.
                "credential": caller.credential_id if caller.credential_kind in ("key", "token") else None,
                "principal": int(caller.principal_id) if is_token else None,
                "policy": caller.policy_id,
                "project": caller.project_id,
                "team": caller.team_id,
            },
        )
        row = cursor.fetchone()
    columns = _TOKEN_COLUMNS if is_token else _KEY_COLUMNS
    *found, database_now = row[columns:]
    return _CallerRows(_state(row[:columns], is_token=is_token), *[*found, database_now - timezone.now()])


def _state(columns: tuple[Any, ...], *, is_token: bool) -> KeyState | TokenState | None:
    if is_token:
        expires_at, revoked_at, version, current_version = columns
        return None if version is None else TokenState(expires_at, revoked_at, version, current_version)
    return None if columns[3] is None else KeyState(*columns)


def _call_failed(code: FailureCode, message: str) -> CallFailed:
    return CallFailed(Failure(code=code, message=message))
