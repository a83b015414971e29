"""Each way to ask for usage events has its index."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.calls.usage_calls import (
    BATCH,
)
from usage.models import UsageEvent
from usage.reporting.queries import COLUMN_BY_GROUP

pytestmark = pytest.mark.django_db


IGNORE_OTHERS = """
UPDATE pg_index SET indisvalid = false
WHERE indrelid = 'usage_usageevent'::regclass AND indexrelid <> %s::regclass
"""


@pytest.mark.parametrize(
    ("columns", "index"),
    [
        ({}, "usage_event_newest"),
        ({"owner": "owner-a"}, "usage_event_owner_newest"),
        ({"public_batch_id": "batch_a"}, "usage_event_public_batch"),
        ({"batch_id": BATCH}, "usage_event_once_an_attempt"),
    ],
)
def test_each_way_to_ask_for_events_has_its_index(columns: dict[str, Any], index: str) -> None:
    events = UsageEvent.objects.filter(**columns)
    if "newest" in index:
        events = events.newest_first().older_than(at=datetime.now(UTC), event_id=BATCH)
    with connection.cursor() as cursor:
        # The table is tiny: what is asked is which index can serve, not whether one pays.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(IGNORE_OTHERS, [index])  # without rows each of them serves, at the same price
    plan = events.explain()
    assert f"Index Scan using {index} " in plan
    assert "newest" not in index or "Sort" not in plan
    assert all(re.search(rf"Index Cond: \(+{column}\b", plan) for column in columns), plan


@pytest.mark.parametrize("group", COLUMN_BY_GROUP.values())
@pytest.mark.parametrize(
    ("owner", "index"),
    [({}, "usage_event_newest"), ({"owner": "owner-a"}, "usage_event_owner_newest")],
)
def test_a_summary_of_any_group_reads_its_stretch_of_time_alone(
    group: str, owner: dict[str, str], index: str
) -> None:
    events = UsageEvent.objects.filter(**owner, at__gte=datetime.now(UTC) - timedelta(days=1))
    with connection.cursor() as cursor, CaptureQueriesContext(connection) as captured:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(IGNORE_OTHERS, [index])
        events.totals_by_group([group], limit=10)
        cursor.execute(f"EXPLAIN {captured.captured_queries[-1]['sql']}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert f"Index Scan using {index} " in plan
    assert re.search(r"Index Cond: .*\bat >= ", plan), plan
