"""Find the rows of a presented credential in one statement.

Not by the ORM: choosing the policy and project within the joins needs half as many joins, which PostgreSQL plans anew
for every request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from relaybatch.db.pipeline import execute_prepared
from routing.credentials.validity import KeyState, TokenState

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class CallerRow:
    """Who calls. `policy_enabled` and `project_enabled` (with its team) are None when there is none.

    `read_at`: the database's clock when the row was read.
    """

    principal_kind: str
    principal_id: str
    principal_enabled: bool
    policy_id: uuid.UUID | None
    policy_enabled: bool | None
    project_id: uuid.UUID | None
    project_enabled: bool | None
    team_id: uuid.UUID | None
    read_at: datetime


_CALLER_COLUMNS = """policy.id, policy.enabled, project.id, project.enabled AND team.enabled, project.team_id,
       clock_timestamp()"""
_JOIN_TEAM = "LEFT JOIN routing_team AS team ON team.id = project.team_id"
# A key's own policy takes precedence over its principal's. A key belongs to a service account or to a user.
KEY_QUERY: LiteralString = f"""
SELECT key.id, key.enabled, key.expires_at, key.revoked_at, key.key_hash, key.previous_key_hash, key.grace_until,
       CASE WHEN account.id IS NULL THEN 'user' ELSE 'serviceaccount' END,
       COALESCE(account.id::text, person.id::text), COALESCE(account.enabled, person.is_active),
       {_CALLER_COLUMNS}
  FROM routing_relaykey AS key
  LEFT JOIN routing_serviceaccount AS account ON account.id = key.service_account_id
  LEFT JOIN routing_user AS person ON person.id = key.user_id
  LEFT JOIN routing_policy AS policy ON policy.id = COALESCE(key.policy_id, account.policy_id, person.policy_id)
  LEFT JOIN routing_project AS project ON project.id = COALESCE(account.project_id, person.project_id)
  {_JOIN_TEAM}
 WHERE key.key_hash = %(hash)s OR (key.previous_key_hash = %(hash)s AND key.previous_key_hash <> '')
"""
# A token belongs to the project that it names, which may be deleted, and to the policy that its user has now.
_TOKEN_QUERY: LiteralString = f"""
SELECT token.expires_at, token.revoked_at, token.version, person.token_version,
       'user', person.id::text, person.is_active,
       {_CALLER_COLUMNS}
  FROM routing_inferencetoken AS token
  JOIN routing_user AS person ON person.id = token.user_id
  LEFT JOIN routing_policy AS policy ON policy.id = person.policy_id
  LEFT JOIN routing_project AS project ON project.id = token.project_id
  {_JOIN_TEAM}
 WHERE token.jti = %(jti)s
"""
# The number of columns before the caller's, in each statement.
_KEY_COLUMNS, _TOKEN_COLUMNS = 7, 4


def find_key(key_hash: str) -> tuple[uuid.UUID, KeyState, CallerRow] | None:
    """Find the key whose value, or value before the last rotation, has this hash: its id, its state, and who calls."""
    row = _fetch_one(KEY_QUERY, {"hash": key_hash})
    return row and (row[0], KeyState(*row[1:_KEY_COLUMNS]), CallerRow(*row[_KEY_COLUMNS:]))


def find_token(jti: uuid.UUID) -> tuple[TokenState, CallerRow] | None:
    """Find the token with this id: its state, and who calls."""
    row = _fetch_one(_TOKEN_QUERY, {"jti": jti})
    return row and (TokenState(*row[:_TOKEN_COLUMNS]), CallerRow(*row[_TOKEN_COLUMNS:]))


def _fetch_one(statement: LiteralString, parameters: Mapping[str, Any]) -> tuple[Any, ...] | None:
    rows = execute_prepared(statement, parameters)
    return rows[0] if rows else None
