"""The statement that settles attempts: items, responses and usage events, all of a group in one transaction.

Every row names the fence (`claim_no`): a worker that lost its item changes nothing. What differs between rows is one
JSON parameter, so that the statement's text does not depend on their number, and PostgreSQL prepares it once.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from batches.completion.batch_end import lock_key
from batches.states import ItemState
from usage.ledger import event_ctes, parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batches.execution.claim import Claim
    from batches.execution.retry_policy import Settlement

    Attempts = Sequence[tuple[Claim, Settlement]]

# The locks of the batches that nobody holds exclusively; the statement after it settles items of these alone.
TRY_LOCK_SHARED = """
SELECT set_config('relaybatch.locked', coalesce(string_agg(key::text, ','), ''), true)
FROM unnest(%s::bigint[]) AS key WHERE pg_try_advisory_xact_lock_shared(key)
"""
_IS_LOCKED = "g.lock_key = ANY(string_to_array(current_setting('relaybatch.locked', true), ',')::bigint[])"
# Another item of the batch still waits, unpublished. Looked for from the batch's end, where the index has few dead
# entries. Rows are compared whole, so that only the index of due items serves the order: with equalities the planner
# may take the batch's own index, and walk over all of its completed items at every settle.
_NOT_LAST = """(
    SELECT o.batch_id FROM batches_batchitem o
    WHERE (o.owner_id, o.batch_id) <= (i.owner_id, i.batch_id) AND o.state = 'available' AND o.published_at IS NULL
    ORDER BY o.owner_id DESC, o.batch_id DESC, o.idx DESC LIMIT 1) = i.batch_id"""
# Back to `available` only while the batch is not cancelled; and never due after the batch's expiry.
_MAY_WAIT = "b.cancel_initiated_at IS NULL"

# The array of ids keeps the plan to the primary key, and so does `nullif`: for `= 'running'`, a planner that has old
# statistics takes the index of all that is in flight. `response`: a row's place among the responses.
_SETTLE = f"""
WITH given AS MATERIALIZED (
    SELECT *, state <> 'available' AS final FROM jsonb_to_recordset(%(settlements)s::jsonb) AS g (
        item_id uuid, lock_key bigint, claim_no int, state text, uncounted int, excused int, excused_403 int,
        wait float8, reason text, length bigint, code text, error text, status int, upstream_error text,
        request_id text, event_id uuid, response int)
), settled AS (
    UPDATE batches_batchitem i SET
        state = g.state,
        finished_at = CASE WHEN g.final THEN clock_timestamp() END,
        attempt = i.attempt - g.uncounted,
        excused = i.excused + g.excused, excused_403 = i.excused_403 + g.excused_403,
        worker_id = NULL, published_at = NULL,
        not_before = CASE WHEN g.final THEN NULL
            ELSE least(b.expires_at, clock_timestamp() + make_interval(secs => g.wait)) END,
        waiting_reason = g.reason, response_length = g.length, error_code = g.code, error = g.error,
        upstream_status = g.status, upstream_request_id = g.request_id,
        upstream_error = decode(g.upstream_error, 'base64')
    FROM given g, batches_batch b
    WHERE i.id = ANY(ARRAY(SELECT item_id FROM given)) AND i.id = g.item_id
      AND nullif(i.state, 'running') IS NULL AND i.claim_no = g.claim_no AND b.id = i.batch_id AND {{condition}}
    RETURNING i.id, g.event_id, g.response
), response AS (
    INSERT INTO batches_itemresponse (item_id, body)
    SELECT id, (%(responses)s::bytea[])[response] FROM settled WHERE response IS NOT NULL
), {event_ctes(fence="settled")}
SELECT id FROM settled
"""
_ONE_OF_MANY = f"CASE WHEN g.final THEN {_NOT_LAST} ELSE {_MAY_WAIT} END"
SETTLE_ONES_OF_MANY = _SETTLE.format(condition=f"{_IS_LOCKED} AND {_ONE_OF_MANY}")
SETTLE_ALONE = _SETTLE.format(condition=f"(g.final OR {_MAY_WAIT})")


class _Row(msgspec.Struct):
    item_id: uuid.UUID
    lock_key: int
    claim_no: int
    state: str
    uncounted: int
    excused: int
    excused_403: int
    wait: float
    reason: str
    length: int | None
    code: str
    error: str
    status: int | None
    upstream_error: bytes | None
    request_id: str
    event_id: uuid.UUID | None
    response: int | None


def settle_parameters(attempts: Attempts) -> dict[str, Any]:
    responses: list[bytes] = []
    rows = [_row(claim, settlement, responses) for claim, settlement in attempts]
    return {
        "settlements": msgspec.json.encode(rows).decode(),
        "responses": responses,
        **parameters([settlement.event for _, settlement in attempts if settlement.event]),
    }


def lock_keys(attempts: Attempts) -> list[int]:
    return sorted({lock_key(claim.batch_id) for claim, _ in attempts})


def _row(claim: Claim, settlement: Settlement, responses: list[bytes]) -> _Row:
    """The row, whose response is appended to `responses`."""
    failure = settlement.failure
    if settlement.response is not None:
        responses.append(settlement.response)
    return _Row(
        item_id=claim.item_id,
        lock_key=lock_key(claim.batch_id),
        claim_no=claim.claim_no,
        state=settlement.state.value,
        uncounted=0 if settlement.is_counted else 1,
        excused=0 if settlement.excused_status is None else 1,
        excused_403=1 if settlement.excused_status == 403 else 0,
        wait=float(settlement.wait_seconds) if settlement.state is ItemState.AVAILABLE else 0.0,
        reason=settlement.waiting_reason.value if settlement.waiting_reason else "",
        length=settlement.response_length,
        code=failure.code.value if failure else "",
        error=failure.message if failure else "",
        status=failure.upstream_status if failure else None,
        upstream_error=(failure.upstream_error or None) if failure else None,
        request_id=settlement.request_id,
        event_id=settlement.event.id if settlement.event else None,
        response=None if settlement.response is None else len(responses),
    )
