"""Passing over a policy for a while, so that items which would only be given back are not published.

A spent limit is over at a known time. Breakers are per host key: a policy may have models that still work, so
that pause ends with the first item of the policy that was not given back. A policy whose calls are too many at once
is not passed over: no more of its items are published than may run, and one that waits for the next free place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from batches.models import PolicyPause

if TYPE_CHECKING:
    import uuid

BREAKER_REASON = "breaker_open"
_MAX_INTEGER = 2**31 - 1

CONCURRENCY_LIMIT_SECONDS = 5.0
# One that waits in a slot for a free place, for a moment: else each place would be free until a message arrives.
ITEMS_WAITING_IN_SLOTS = 1

# For a statement in which `b` is a batch.
NOT_PAUSED = """NOT EXISTS (
    SELECT FROM batches_policypause p
    WHERE p.policy_id = b.policy_id AND p.until > clock_timestamp() AND p.at_once = 0)"""

# For items `i` of a batch `b`: those that may be published now.
DUE = """i.owner_id = b.owner_id AND i.batch_id = b.id AND i.state = 'available' AND i.published_at IS NULL
    AND (i.not_before IS NULL OR i.not_before <= clock_timestamp())"""

# Policies with too many calls at once: how many more of the owner's items may be published, and the one batch that they
# are taken from. The next batch has its turn when that one has none left: each would else get all the places. The order
# of its items keeps the plan to their index.
CONCURRENCY_LIMITED = f"""
SELECT p.policy_id, greatest(0, p.at_once - (
    SELECT count(*) FROM batches_batchitem i JOIN batches_batch b ON b.id = i.batch_id
    WHERE i.owner_id = %(owner)s AND b.policy_id = p.policy_id
      AND (i.state = 'running' OR (i.state = 'available' AND i.published_at IS NOT NULL)))) AS places, (
    SELECT b.id FROM batches_batch b
    CROSS JOIN LATERAL (SELECT FROM batches_batchitem i WHERE {DUE} ORDER BY i.idx LIMIT 1) first
    WHERE b.owner_id = %(owner)s AND b.policy_id = p.policy_id AND b.ended_at IS NULL
    ORDER BY b.id LIMIT 1) AS batch_id
FROM batches_policypause p WHERE p.until > clock_timestamp() AND p.at_once > 0
"""

# A pause only ever grows, and a whole one goes before one that lets some items pass.
_UPSERT_PAUSE = """
INSERT INTO batches_policypause AS p (policy_id, until, reason, at_once)
VALUES (%(policy)s, clock_timestamp() + make_interval(secs => %(seconds)s), %(reason)s, %(at_once)s)
ON CONFLICT (policy_id) DO UPDATE
SET until = EXCLUDED.until, reason = EXCLUDED.reason, at_once = EXCLUDED.at_once
WHERE p.until < clock_timestamp() OR (p.at_once > 0 AND EXCLUDED.at_once = 0)
   OR (p.until < EXCLUDED.until AND (p.at_once > 0) = (EXCLUDED.at_once > 0))
"""


def pause_policy(policy_id: uuid.UUID, *, reason: str, seconds: float) -> None:
    _upsert_pause(policy_id, reason=reason, seconds=seconds, concurrency_limit=0)


def limit_concurrency(policy_id: uuid.UUID, *, reason: str, max_running: int) -> None:
    """No more than so many calls of the policy may run at once, and so many do."""
    _upsert_pause(
        policy_id,
        reason=reason,
        seconds=CONCURRENCY_LIMIT_SECONDS,
        concurrency_limit=max_running + ITEMS_WAITING_IN_SLOTS,
    )


def _upsert_pause(policy_id: uuid.UUID, *, reason: str, seconds: float, concurrency_limit: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            _UPSERT_PAUSE,
            {
                "policy": policy_id,
                "reason": reason,
                "seconds": seconds,
                "at_once": min(concurrency_limit, _MAX_INTEGER),
            },
        )


def end_breaker_pause(policy_id: uuid.UUID) -> None:
    PolicyPause.objects.filter(policy_id=policy_id, reason=BREAKER_REASON).delete()
