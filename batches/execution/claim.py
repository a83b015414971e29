"""Claiming an item: one conditional UPDATE decides who runs it, and returns all that running it needs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg.rows import class_row

from batches.models.public_ids import public_id
from relaybatch.db.pipeline import raw_connection
from routing.calls.call import Caller
from routing.calls.waiting_reason import WaitingReason

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence
    from datetime import datetime

_CLAIM_COLUMNS = """i.id AS item_id, i.idx, i.custom_id, i.attempt, i.excused, i.excused_403, i.claim_no, i.started_at,
i.request_offset, i.request_length,
b.id AS batch_id, b.total_items = 1 AS is_only_item, b.dialect, b.shape, b.max_attempts, b.on_rate_limit, b.expires_at,
b.upstream_headers::text AS upstream_headers_json,
b.owner_id, o.name AS owner, b.policy_id, b.project_id, b.team_id,
b.principal_kind, b.principal_id, b.credential_kind, b.credential_id,
b.cancel_initiated_at IS NOT NULL AS is_cancelled,
coalesce(b.expires_at <= clock_timestamp(), false) AS is_overdue,
EXISTS (SELECT FROM batches_policypause p WHERE p.policy_id = b.policy_id AND p.reason = %(breaker_open)s)
    AS has_breaker_pause"""

# Not before it was published: a message may be left of what the database has lost (a failover, a restored backup), and
# items that were never claimed have to be the end of their batch (batches/models/item.py).
# Those that somebody else has locked are skipped: who waits for one row while it holds others may wait for ever. The
# planner does not know the array's length, so that one plan serves all groups.
_CLAIMABLE = """
SELECT id FROM batches_batchitem WHERE id = ANY(ARRAY(SELECT unnest(%(items)s))) AND state = 'available'
  AND (published_at IS NOT NULL OR claim_no > 0)
  AND (not_before IS NULL OR not_before <= clock_timestamp()) FOR NO KEY UPDATE"""
_CLAIM = f"""
WITH claimable AS ({_CLAIMABLE}{{skip_locked}})
UPDATE batches_batchitem i SET state = 'running', claim_no = i.claim_no + 1, attempt = i.attempt + 1,
    worker_id = %(worker)s, started_at = clock_timestamp(), not_before = NULL, waiting_reason = ''
FROM claimable, batches_batch b JOIN batches_owner o ON o.id = b.owner_id
WHERE i.id = claimable.id AND b.id = i.batch_id
RETURNING {_CLAIM_COLUMNS}
"""
_CLAIM_ONE = _CLAIM.format(skip_locked="")
_CLAIM_UNLOCKED = _CLAIM.format(skip_locked=" SKIP LOCKED")

_HELD_BY_WORKER = f"""
SELECT {_CLAIM_COLUMNS} FROM batches_batchitem i
JOIN batches_batch b ON b.id = i.batch_id JOIN batches_owner o ON o.id = b.owner_id
WHERE i.state = 'running' AND i.worker_id = %(worker)s
"""

_HELD_BY_LOST_WORKERS = f"""
SELECT {_CLAIM_COLUMNS} FROM batches_batchitem i
JOIN batches_batch b ON b.id = i.batch_id JOIN batches_owner o ON o.id = b.owner_id
WHERE i.state = 'running' AND i.id <> ALL(%(exclude)s::uuid[]) AND NOT EXISTS (
    SELECT FROM batches_worker w
    WHERE w.id = i.worker_id AND w.seen_at >= clock_timestamp() - make_interval(secs => %(lost)s))
ORDER BY i.id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed item, and what its batch recorded at submit. `claim_no` is the fence of everything that follows.

    Field names are the columns of the statements. `has_breaker_pause`: the policy is paused for open breakers.
    """

    item_id: uuid.UUID
    idx: int
    custom_id: str | None = field(repr=False)
    attempt: int
    excused: int
    excused_403: int
    claim_no: int
    started_at: datetime
    request_offset: int
    request_length: int
    batch_id: uuid.UUID
    is_only_item: bool
    dialect: str
    shape: str
    max_attempts: int
    on_rate_limit: str
    expires_at: datetime | None
    upstream_headers_json: str
    owner_id: int
    owner: str
    policy_id: uuid.UUID
    project_id: uuid.UUID | None
    team_id: uuid.UUID | None
    principal_kind: str
    principal_id: str
    credential_kind: str
    credential_id: str
    is_cancelled: bool
    is_overdue: bool
    has_breaker_pause: bool

    @property
    def counted_attempts(self) -> int:
        """This attempt and those before it, without the excused ones: what `max_attempts` limits."""
        return self.attempt - self.excused

    @property
    def caller(self) -> Caller:
        return Caller(
            owner=self.owner,
            credential_kind=self.credential_kind,
            credential_id=self.credential_id,
            principal_kind=self.principal_kind,
            principal_id=self.principal_id,
            policy_id=self.policy_id,
            project_id=self.project_id,
            team_id=self.team_id,
        )

    @property
    def upstream_headers(self) -> Mapping[str, str]:
        headers: Mapping[str, str] = json.loads(self.upstream_headers_json)
        return headers

    @property
    def public_batch_id(self) -> str:
        return public_id(self.dialect, self.batch_id)

    @property
    def log_fields(self) -> dict[str, object]:
        return {"batch_id": self.batch_id, "item_id": self.item_id, "attempt": self.attempt}


def claim_item(item_id: uuid.UUID, *, worker_id: uuid.UUID) -> Claim | None:
    """Claim the item; None where someone else has it, it is not due, or it is final. Safe for any id, at any time."""
    return next(iter(_fetch(_CLAIM_ONE, {"items": [item_id], "worker": worker_id})), None)


def claim_unlocked(item_ids: Sequence[uuid.UUID], *, worker_id: uuid.UUID) -> dict[uuid.UUID, Claim]:
    """Claim several items in one transaction, but those whose rows are locked: what is missing may be claimed alone."""
    claims = _fetch(_CLAIM_UNLOCKED, {"items": list(item_ids), "worker": worker_id})
    return {claim.item_id: claim for claim in claims}


def claim_held_by(item_id: uuid.UUID, *, worker_id: uuid.UUID) -> Claim | None:
    """Return the claim that this worker holds on the item, if any."""
    values = {"item": item_id, "worker": worker_id}
    return next(iter(_fetch(f"{_HELD_BY_WORKER} AND i.id = %(item)s", values)), None)


def claims_held_by(*, worker_id: uuid.UUID, older_than_seconds: float) -> list[Claim]:
    age = "i.started_at < clock_timestamp() - make_interval(secs => %(age)s)"
    values = {"worker": worker_id, "age": older_than_seconds}
    return _fetch(f"{_HELD_BY_WORKER} AND {age} ORDER BY i.id", values)


def claims_of_lost_workers(*, lost_seconds: int, exclude: list[uuid.UUID], limit: int) -> list[Claim]:
    """Return claims whose worker row is missing, or has had no heartbeat for `lost_seconds`. They are not claimed anew.

    `exclude`: items that were tried already.
    """
    return _fetch(_HELD_BY_LOST_WORKERS, {"lost": lost_seconds, "exclude": exclude, "limit": limit})


def _fetch(statement: LiteralString, values: Mapping[str, Any]) -> list[Claim]:
    with psycopg.Cursor(raw_connection(), row_factory=class_row(Claim)) as cursor:
        return cursor.execute(
            statement, {"breaker_open": WaitingReason.BREAKER_OPEN.value, **values}
        ).fetchall()
