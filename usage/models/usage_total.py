"""A running total of usage events, which changes in the transaction that settles an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from django.db import connection, models

from routing.meters import METERS

if TYPE_CHECKING:
    from collections.abc import Iterable

_WHOLE_NUMBER: dict[str, Any] = {"max_digits": 30, "decimal_places": 0, "default": 0}

# Of an event, what the totals sum.
SUM_COLUMNS = ("requests", "unpriced", "cost_nanos", *METERS)
# Each poll of a status reads it, and the ORM takes longer to build such a statement than PostgreSQL to run it.
_TOTALS: LiteralString = f"""
SELECT scope, {", ".join(f"sum({name})" for name in SUM_COLUMNS)} FROM usage_usagetotal
WHERE scope = ANY(%s) GROUP BY scope
"""


class UsageTotalQuerySet(models.QuerySet["UsageTotal"]):
    def totals_by_scope(self, scopes: Iterable[str]) -> dict[str, dict[str, int]]:
        """`{scope: {"requests", "unpriced", "cost_nanos", and each meter}}` over all shards, where there are rows."""
        named = list(scopes)
        if not named:
            return {}
        with connection.cursor() as cursor:
            cursor.execute(_TOTALS, [named])
            return {
                scope: dict(zip(SUM_COLUMNS, map(int, row), strict=True)) for scope, *row in cursor.fetchall()
            }


class UsageTotal(models.Model):
    """A running total of one scope (`batch:<uuid>`, `project:<uuid>:2026-11`), summed over its shards.

    Each settling thread adds to a shard of its own, so that transactions do not wait for one row. `requests` leaves out
    late events; all other columns include them. Only `usage.ledger` writes here.
    """

    pk = models.CompositePrimaryKey("scope", "shard")
    scope = models.CharField(max_length=80)
    shard = models.SmallIntegerField()
    requests = models.BigIntegerField(default=0)
    unpriced = models.BigIntegerField(default=0)
    # Wider than the columns of an event: an overflow of the sum would fail the next settlement.
    input = models.DecimalField(**_WHOLE_NUMBER)
    cache_read = models.DecimalField(**_WHOLE_NUMBER)
    cache_write = models.DecimalField(**_WHOLE_NUMBER)
    output = models.DecimalField(**_WHOLE_NUMBER)
    reasoning = models.DecimalField(**_WHOLE_NUMBER)
    cache_write_5m = models.DecimalField(**_WHOLE_NUMBER)
    cache_write_1h = models.DecimalField(**_WHOLE_NUMBER)
    cost_nanos = models.DecimalField(**_WHOLE_NUMBER)

    objects = UsageTotalQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.scope}/{self.shard}"
