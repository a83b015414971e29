"""Included usage: what a project may use in a calendar month (UTC), and what is settled of it.

The month is that of the database's clock, which also dates the events: at a month's edge every worker and every
reader passes to the new one at the same moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
from django.conf import settings
from django.db import connection

from routing.models import Project
from usage.ledger import month_scope
from usage.representation import shown_time

if TYPE_CHECKING:
    import uuid

# In the path of every item whose project has an allowance: its rows are one scope's shards, however full the month.
THIS_MONTH = f"""
SELECT now(), coalesce(sum(cost_nanos), 0)
FROM usage_usagetotal WHERE scope = {month_scope(project="%(project)s::uuid", at="now()")}
"""


@dataclass(frozen=True, slots=True)
class Month:
    """A project's current month. Unpriced events add nothing to `used_nanos`: nobody knows what they cost."""

    at: datetime
    used_nanos: int

    @property
    def period(self) -> str:
        return f"{self.at.astimezone(UTC):%Y-%m}"

    @property
    def ends_at(self) -> datetime:
        at = self.at.astimezone(UTC)
        years, month = divmod(at.month, 12)
        return datetime(at.year + years, month + 1, 1, tzinfo=UTC)


def is_spent(*, project_id: uuid.UUID | None, included_nanos: int | None) -> bool:
    """Whether what is settled in the current month has reached the allowance. None = no limit, and no query.

    What is running now is not settled yet, so the month may end above its allowance by that much.
    """
    if project_id is None or included_nanos is None:
        return False
    return this_month(project_id).used_nanos >= included_nanos


def this_month(project_id: uuid.UUID | None) -> Month:
    """Read anew each time, in one query."""
    connection.ensure_connection()
    # psycopg's own cursor, so that the server keeps the statement prepared.
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        at, used = cursor.execute(THIS_MONTH, {"project": project_id}).fetchall()[0]
    return Month(at=at, used_nanos=int(used))


def included_usage(project_id: uuid.UUID | None) -> dict[str, Any]:
    """What a caller is told. Without an allowance `included_nanos` and `remaining_nanos` are None; without a project,
    which alone has a running total, `used_nanos` as well.
    """
    month = this_month(project_id)
    included = None if project_id is None else _included_nanos(project_id)
    return {
        "period": month.period,
        "included_nanos": included,
        "used_nanos": None if project_id is None else month.used_nanos,
        "remaining_nanos": None if included is None else max(included - month.used_nanos, 0),
        "currency": settings.RELAY_CURRENCY,
        "resets_at": shown_time(month.ends_at),
    }


def _included_nanos(project_id: uuid.UUID) -> int | None:
    return Project.objects.filter(id=project_id).values_list("included_nanos", flat=True).first()
