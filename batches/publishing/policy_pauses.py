"""Pausing a policy: items that would only be given back are not published for a while.

A spent limit refills at a known time. Breakers are per host key: a policy may have models that still work, so that
this pause ends with the first item of the policy that was not given back. A policy whose calls are at their concurrency
limit is not paused: no more of its items are published than may run, and one that waits for the next call to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from batches.models import PolicyPause
from batches.models.item import DUE_SQL, IN_WINDOW_SQL
from routing.calls.waiting_reason import WaitingReason

if TYPE_CHECKING:
    import uuid

_MAX_INTEGER = 2**31 - 1

CONCURRENCY_LIMIT_SECONDS = 5.0
# One item waits for a moment in a worker's slot: else each call that ends would leave a gap until a message arrives.
ITEMS_WAITING_IN_SLOTS = 1

# For a statement in which `b` is a batch.
NOT_PAUSED = """NOT EXISTS (
    SELECT FROM batches_policypause p
    WHERE p.policy_id = b.policy_id AND p.until > clock_timestamp() AND p.concurrency_limit = 0)"""

# For items `i` of a batch `b`: those that may be published now.
DUE = f"i.owner_id = b.owner_id AND i.batch_id = b.id AND {DUE_SQL}"

# Policies at their concurrency limit: how many more of the owner's items may be published, and the one batch that they
# are taken from. The next batch follows when that one has none left: each batch would else get as many. The order of
# its items keeps the plan to their index.
CONCURRENCY_LIMITED = f"""
SELECT p.policy_id, greatest(0, p.concurrency_limit - (
    SELECT count(*) FROM batches_batchitem i JOIN batches_batch b ON b.id = i.batch_id
    WHERE i.owner_id = %(owner)s AND b.policy_id = p.policy_id AND {IN_WINDOW_SQL})) AS remaining, (
    SELECT b.id FROM batches_batch b
    CROSS JOIN LATERAL (SELECT FROM batches_batchitem i WHERE {DUE} ORDER BY i.idx LIMIT 1) first
    WHERE b.owner_id = %(owner)s AND b.policy_id = p.policy_id AND b.ended_at IS NULL
    ORDER BY b.id LIMIT 1) AS batch_id
FROM batches_policypause p WHERE p.until > clock_timestamp() AND p.concurrency_limit > 0
"""

# A pause is only ever prolonged, and a full one replaces one that lets some items pass.
_UPSERT_PAUSE = """
INSERT INTO batches_policypause AS p (policy_id, until, reason, concurrency_limit)
VALUES (%(policy)s, clock_timestamp() + make_interval(secs => %(seconds)s), %(reason)s, %(concurrency_limit)s)
ON CONFLICT (policy_id) DO UPDATE
SET until = EXCLUDED.until, reason = EXCLUDED.reason, concurrency_limit = EXCLUDED.concurrency_limit
WHERE p.until < clock_timestamp() OR (p.concurrency_limit > 0 AND EXCLUDED.concurrency_limit = 0)
   OR (p.until < EXCLUDED.until AND (p.concurrency_limit > 0) = (EXCLUDED.concurrency_limit > 0))
"""


def pause_policy(policy_id: uuid.UUID, *, reason: WaitingReason, seconds: float) -> None:
    """Publish no item of the policy for so many seconds."""
    _upsert_pause(policy_id, reason=reason, seconds=seconds, concurrency_limit=0)


def limit_concurrency(policy_id: uuid.UUID, *, reason: WaitingReason, max_running: int) -> None:
    """Publish the policy's items only as its calls end: `max_running` of them run already, and no more may."""
    _upsert_pause(
        policy_id,
        reason=reason,
        seconds=CONCURRENCY_LIMIT_SECONDS,
        concurrency_limit=max_running + ITEMS_WAITING_IN_SLOTS,
    )


def end_breaker_pause(policy_id: uuid.UUID) -> None:
    PolicyPause.objects.filter(policy_id=policy_id, reason=WaitingReason.BREAKER_OPEN).delete()


def _upsert_pause(
    policy_id: uuid.UUID, *, reason: WaitingReason, seconds: float, concurrency_limit: int
) -> None:
    values = {
        "policy": policy_id,
        "reason": reason.value,
        "seconds": seconds,
        "concurrency_limit": min(concurrency_limit, _MAX_INTEGER),
    }
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT_PAUSE, values)
