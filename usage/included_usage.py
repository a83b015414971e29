"""Included usage: the allowance of a project in a calendar month (UTC), and what has been settled of it.

The month is that of the database's clock, which also dates the events: at a month's edge every worker and every
reader passes to the new one at the same moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import psycopg
from django.conf import settings
from django.db import connection
from msgspec import Meta, Struct

from relaybatch.http.timestamps import Timestamp, format_time
from routing.calls.failures import Failure, FailureCode
from routing.credentials.recheck import Allowance
from routing.models import Project
from usage.ledger import month_scope

if TYPE_CHECKING:
    import uuid

# Runs for every item whose project has an allowance. It reads the shards of one scope, however full the month is.
MONTH_TOTALS_SQL = f"""
SELECT now(), coalesce(sum(cost_nanos), 0), coalesce(sum(unpriced), 0)
FROM usage_usagetotal WHERE scope = {month_scope(project="%(project)s::uuid", at="now()")}
"""


@dataclass(frozen=True, slots=True)
class MonthUsage:
    """A project's current month. `unpriced`: how many events are not in `used_nanos`, since their cost is unknown."""

    at: datetime
    used_nanos: int
    unpriced: int

    @property
    def period(self) -> str:
        return f"{self.at.astimezone(UTC):%Y-%m}"

    @property
    def ends_at(self) -> datetime:
        at = self.at.astimezone(UTC)
        years, month = divmod(at.month, 12)
        return datetime(at.year + years, month + 1, 1, tzinfo=UTC)


ALLOWANCE_SPENT = Failure(
    FailureCode.USAGE_LIMIT_EXCEEDED, "the project's included usage of this month is spent"
)
ALLOWANCE_CLOSED = Failure(
    FailureCode.USAGE_LIMIT_EXCEEDED,
    "the project's included usage is closed until the month ends (UTC): a call of it has no price, and "
    "unpriced_closes is set. Its operator adds what the price list lacks, and lifts unpriced_closes to open it",
)


def allowance_failure(*, project_id: uuid.UUID | None, allowance: Allowance | None) -> Failure | None:
    """The failure of an item when the settled usage of the month has reached the allowance, else None.

    With `unpriced_closes`, one unpriced event closes the month as well. Without an allowance there is no limit and no
    query. Running items are not settled yet, so a month may end above its allowance by what they cost.
    """
    if project_id is None or allowance is None:
        return None
    month = current_month_usage(project_id)
    if month.used_nanos >= allowance.nanos:
        return ALLOWANCE_SPENT
    return ALLOWANCE_CLOSED if allowance.unpriced_closes and month.unpriced else None


def current_month_usage(project_id: uuid.UUID | None) -> MonthUsage:
    """Read the current month in one query; nothing is cached."""
    connection.ensure_connection()
    # psycopg's own cursor, so that the server keeps the statement prepared.
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        at, used, unpriced = cursor.execute(MONTH_TOTALS_SQL, {"project": project_id}).fetchall()[0]
    return MonthUsage(at=at, used_nanos=int(used), unpriced=int(unpriced))


class IncludedUsage(Struct, frozen=True, kw_only=True):
    """What a caller may use in the current month, and has used."""

    period: Annotated[str, Meta(description="The month, UTC.", examples=["2026-11"])]
    included_nanos: Annotated[int | None, Meta(description="Null: no allowance.")]
    used_nanos: Annotated[int | None, Meta(description="Null: the caller has no project.")]
    remaining_nanos: Annotated[int | None, Meta(description="Null: no allowance. 0: spent or closed.")]
    currency: str
    resets_at: Timestamp


def included_usage(project_id: uuid.UUID | None) -> IncludedUsage:
    """The answer for a caller. Only projects have running totals, so `used_nanos` is null without one."""
    month = current_month_usage(project_id)
    allowance = None if project_id is None else _allowance(project_id)
    return IncludedUsage(
        period=month.period,
        included_nanos=allowance.nanos if allowance else None,
        used_nanos=None if project_id is None else month.used_nanos,
        remaining_nanos=_remaining_nanos(allowance, month) if allowance else None,
        currency=settings.RELAY_CURRENCY,
        resets_at=format_time(month.ends_at),
    )


def _remaining_nanos(allowance: Allowance, month: MonthUsage) -> int:
    if allowance.unpriced_closes and month.unpriced:
        return 0
    return max(allowance.nanos - month.used_nanos, 0)


def _allowance(project_id: uuid.UUID) -> Allowance | None:
    found = Project.objects.filter(id=project_id, included_nanos__isnull=False)
    row = found.values_list("included_nanos", "unpriced_closes").first()
    return row and Allowance(nanos=row[0] or 0, unpriced_closes=row[1])
