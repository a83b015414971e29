"""Save usage events and add them to the running totals, in one SQL statement.

The statement that settles an attempt includes these CTEs, so that a result and its usage are saved together or not at
all. All events are one JSON parameter, typed by the table: the statement's text does not depend on their number or
size, so PostgreSQL prepares it once. It runs for every item, hence no ORM.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

import msgspec
from django.db import connection

from routing.meters import METERS
from usage.events import EventDraft
from usage.models.usage_total import SUM_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARDS = 16
_EVENT_COLUMNS = tuple(field.name for field in dataclasses.fields(EventDraft))


def event_ctes(*, fence: str | None = None) -> str:
    """`usage_event AS (…), usage_total AS (…)`, for a WITH after the CTE that `fence` names. Takes `parameters()`.

    Saved are the events whose ids the fence has as `event_id`. One that exists already is neither changed nor counted
    again.
    `usage_event` has a row for each event that was saved.
    """
    return f"{_event_cte(fence)},\n{_TOTAL_CTE}"


def month_scope(*, project: str, at: str) -> str:
    """SQL of the scope of a project's usage at that time: its calendar month, UTC."""
    return f"'project:' || {project} || ':' || to_char({at} AT TIME ZONE 'UTC', 'YYYY-MM')"


def sums_by_scope(events: str) -> str:
    """A SELECT of `scope` and `SUM_COLUMNS`: the totals of the events in the table or CTE of that name."""
    return f"""SELECT scope,
         count(*) FILTER (WHERE NOT late) AS requests, count(*) FILTER (WHERE cost_nanos IS NULL) AS unpriced,
         {", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in ("cost_nanos", *METERS))}
  FROM {events} CROSS JOIN LATERAL (VALUES
    ('batch:' || batch_id),
    ({month_scope(project="project_id", at="at")})
  ) AS scopes (scope)
  WHERE scope IS NOT NULL
  GROUP BY scope"""


def parameters(drafts: Sequence[EventDraft]) -> dict[str, str]:
    return {"usage_events": msgspec.json.encode(drafts).decode(), "usage_shard": str(_own_shard())}


def record(draft: EventDraft) -> bool:
    """Save one event outside of a settling statement; False when it existed already."""
    return record_many([draft]) == 1


def record_many(drafts: Sequence[EventDraft]) -> int:
    """Save events in the caller's transaction, and return how many were new."""
    if not drafts:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, parameters(drafts))
        row: tuple[int] = cursor.fetchone()
    return row[0]


def _own_shard() -> int:
    # Threads that start together have consecutive native ids, on every platform and after a fork.
    return threading.get_native_id() % SHARDS


def _event_cte(fence: str | None) -> str:
    return f"""usage_event AS (
  INSERT INTO usage_usageevent (at, {", ".join(_EVENT_COLUMNS)})
  SELECT now(), {", ".join(_EVENT_COLUMNS)}
  FROM jsonb_populate_recordset(NULL::usage_usageevent, %(usage_events)s::jsonb)
  {f"WHERE id IN (SELECT event_id FROM {fence})" if fence else ""}
  ON CONFLICT DO NOTHING
  RETURNING at, batch_id, project_id, late, cost_nanos, {", ".join(METERS)}
)"""


# Ordered by scope: whoever locks several totals locks them in the same order, so there is no deadlock.
_TOTAL_CTE = f"""usage_total AS (
  INSERT INTO usage_usagetotal AS total (scope, shard, {", ".join(SUM_COLUMNS)})
  SELECT scope, %(usage_shard)s::smallint, {", ".join(SUM_COLUMNS)}
  FROM ({sums_by_scope("usage_event")}) AS summed ORDER BY scope
  ON CONFLICT (scope, shard) DO UPDATE SET {", ".join(f"{n} = total.{n} + excluded.{n}" for n in SUM_COLUMNS)}
)"""

_RECORD = f"WITH {event_ctes()} SELECT count(*) FROM usage_event"
