"""Claiming an item: one conditional UPDATE says who runs it, and tells all that running it needs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
from psycopg.rows import class_row

from batches.models.public_ids import public_id
from relaybatch.db.pipeline import raw_connection
from routing.upstream.call import Caller

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping
    from datetime import datetime

_CLAIM_COLUMNS = """i.id AS item_id, i.idx, i.custom_id, i.attempt, i.excused, i.excused_403, i.claim_no, i.started_at,
i.request_offset, i.request_length,
b.id AS batch_id, b.dialect, b.shape, b.max_attempts, b.on_rate_limit, b.expires_at,
b.upstream_headers::text AS upstream_headers_json,
b.owner_id, o.name AS owner, b.policy_id, b.project_id, b.team_id,
b.principal_kind, b.principal_id, b.credential_kind, b.credential_id,
b.cancel_initiated_at IS NOT NULL AS cancelled,
coalesce(b.expires_at <= clock_timestamp(), false) AS overdue,
EXISTS (SELECT FROM batches_policypause p WHERE p.policy_id = b.policy_id AND p.reason = 'breaker_open')
    AS breaker_pause"""

_CLAIM = f"""
UPDATE batches_batchitem i SET state = 'running', claim_no = i.claim_no + 1, attempt = i.attempt + 1,
    worker_id = %(worker)s, started_at = clock_timestamp(), not_before = NULL, waiting_reason = ''
FROM batches_batch b JOIN batches_owner o ON o.id = b.owner_id
WHERE i.id = %(item)s AND i.state = 'available' AND b.id = i.batch_id
  AND (i.not_before IS NULL OR i.not_before <= clock_timestamp())
RETURNING {_CLAIM_COLUMNS}
"""

_HELD_BY_WORKER = f"""
SELECT {_CLAIM_COLUMNS} FROM batches_batchitem i
JOIN batches_batch b ON b.id = i.batch_id JOIN batches_owner o ON o.id = b.owner_id
WHERE i.state = 'running' AND i.worker_id = %(worker)s
"""

_HELD_BY_LOST_WORKERS = f"""
SELECT {_CLAIM_COLUMNS} FROM batches_batchitem i
JOIN batches_batch b ON b.id = i.batch_id JOIN batches_owner o ON o.id = b.owner_id
WHERE i.state = 'running' AND i.id <> ALL(%(tried)s::uuid[]) AND NOT EXISTS (
    SELECT FROM batches_worker w
    WHERE w.id = i.worker_id AND w.seen_at >= clock_timestamp() - make_interval(secs => %(lost)s))
ORDER BY i.id LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed item and what its batch recorded at submit. `claim_no` is the fence of everything that follows."""

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
    cancelled: bool
    overdue: bool
    breaker_pause: bool

    @property
    def counted_attempts(self) -> int:
        """What `max_attempts` is about: this attempt and those before it, without the excused ones."""
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
    """None: someone else has the item, it is not due, or it is final. Safe to call for any id, at any time."""
    with claim_cursor() as cursor:
        return cursor.execute(_CLAIM, {"item": item_id, "worker": worker_id}).fetchone()


def claim_held_by(item_id: uuid.UUID, *, worker_id: uuid.UUID) -> Claim | None:
    """The claim that this worker holds on the item, if it does."""
    with claim_cursor() as cursor:
        return cursor.execute(
            f"{_HELD_BY_WORKER} AND i.id = %(item)s", {"item": item_id, "worker": worker_id}
        ).fetchone()


def claims_held_by(*, worker_id: uuid.UUID, older_than_seconds: float) -> list[Claim]:
    with claim_cursor() as cursor:
        age = "i.started_at < clock_timestamp() - make_interval(secs => %(age)s)"
        values = {"worker": worker_id, "age": older_than_seconds}
        return cursor.execute(f"{_HELD_BY_WORKER} AND {age} ORDER BY i.id", values).fetchall()


def claims_of_lost_workers(*, lost_seconds: int, exclude: list[uuid.UUID], limit: int) -> list[Claim]:
    """Running items whose worker was not seen for `lost_seconds`, or is gone, but those tried already.

    They are not claimed anew.
    """
    with claim_cursor() as cursor:
        values = {"lost": lost_seconds, "tried": exclude, "most": limit}
        return cursor.execute(_HELD_BY_LOST_WORKERS, values).fetchall()


def claim_cursor() -> psycopg.Cursor[Claim]:
    return psycopg.Cursor(raw_connection(), row_factory=class_row(Claim))
