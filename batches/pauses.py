"""Passing over a policy for a while, so that items which would only be given back are not published.

A spent limit is over at a known time. Breakers are per host key: a policy may have models that still work, so
that pause ends with the first item of the policy that was not given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from batches.models import PolicyPause

if TYPE_CHECKING:
    import uuid

BREAKER = "breaker_open"

# For a statement in which `b` is a batch.
NOT_PAUSED = """NOT EXISTS (
    SELECT FROM batches_policypause p WHERE p.policy_id = b.policy_id AND p.until > clock_timestamp())"""

_PAUSE = """
INSERT INTO batches_policypause AS p (policy_id, until, reason)
VALUES (%s, clock_timestamp() + make_interval(secs => %s), %s)
ON CONFLICT (policy_id) DO UPDATE SET until = EXCLUDED.until, reason = EXCLUDED.reason WHERE p.until < EXCLUDED.until
"""


def pause(policy_id: uuid.UUID, *, reason: str, seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_PAUSE, [policy_id, seconds, reason])


def end_breaker_pause(policy_id: uuid.UUID) -> None:
    PolicyPause.objects.filter(policy_id=policy_id, reason=BREAKER).delete()
