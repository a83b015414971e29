"""Compare the running totals with the sums of the events, and repair them, while workers go on settling."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from usage.ledger import sums_by_scope
from usage.models.usage_total import SUM_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

# An event and its part of the totals are one transaction, so one statement's snapshot has both or neither.
# A batch without a total was deleted together with it, which is no difference.
_COMPARE_SQL = f"""
WITH counted AS ({sums_by_scope("usage_usageevent")}),
kept AS (
  SELECT scope, min(shard) AS shard, {", ".join(f"sum({name}) AS {name}" for name in SUM_COLUMNS)}
  FROM usage_usagetotal GROUP BY scope
),
compared AS (
  SELECT scope, shard,
         jsonb_build_object({", ".join(f"'{name}', coalesce(kept.{name}, 0)" for name in SUM_COLUMNS)}) AS kept,
         jsonb_build_object({", ".join(f"'{name}', coalesce(counted.{name}, 0)" for name in SUM_COLUMNS)}) AS counted
  FROM counted FULL JOIN kept USING (scope)
  WHERE kept.scope IS NOT NULL OR starts_with(scope, 'project:')
)
SELECT (SELECT count(*) FROM usage_usageevent), count(*),
       coalesce(jsonb_agg(to_jsonb(compared) ORDER BY scope) FILTER (WHERE kept <> counted), '[]')::text
FROM compared
"""

# Sums are incremented, never overwritten, so that what workers add meanwhile stays. Rows are locked in the order of
# their scopes, as workers lock them.
_CORRECT_SQL = f"""
UPDATE usage_usagetotal SET {", ".join(f"{name} = {name} + %({name})s" for name in SUM_COLUMNS)}
WHERE scope = %(scope)s AND shard = %(shard)s
"""
_ADD_SQL = f"""
INSERT INTO usage_usagetotal AS total (scope, shard, {", ".join(SUM_COLUMNS)})
VALUES (%(scope)s, 0, {", ".join(f"%({name})s" for name in SUM_COLUMNS)})
ON CONFLICT (scope, shard) DO UPDATE SET {", ".join(f"{name} = total.{name} + excluded.{name}" for name in SUM_COLUMNS)}
"""
# Two repairs at once would both add the same difference.
_LOCK_SQL = "SELECT pg_advisory_xact_lock(hashtext('relaybatch.usage.repair'))"


@dataclass(frozen=True, slots=True)
class Difference:
    """A scope whose total is not the sum of its events. `shard` None: it has no total."""

    scope: str
    shard: int | None
    kept: Mapping[str, int]
    counted: Mapping[str, int]

    def __str__(self) -> str:
        wrong = [
            f"{name} is {self.kept[name]}, its events have {self.counted[name]}"
            for name in SUM_COLUMNS
            if self.kept[name] != self.counted[name]
        ]
        return f"{self.scope}: {'; '.join(wrong)}"

    @property
    def missing(self) -> dict[str, int]:
        return {name: self.counted[name] - self.kept[name] for name in SUM_COLUMNS}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`scopes`: how many totals were compared, of batches and of projects' months."""

    events: int
    scopes: int
    differences: tuple[Difference, ...]


def compare() -> Comparison:
    """Compare all totals in one statement that reads every event and takes no locks."""
    with connection.cursor() as cursor:
        cursor.execute(_COMPARE_SQL)
        events, scopes, found = cursor.fetchone()
    return Comparison(events, scopes, tuple(Difference(**each) for each in json.loads(found)))


def repair() -> Comparison:
    """Compare, and repair every difference in one transaction. Returns what was found."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_SQL)
        comparison = compare()
        for difference in comparison.differences:
            values: dict[str, Any] = {"scope": difference.scope, "shard": difference.shard}
            cursor.execute(
                _ADD_SQL if difference.shard is None else _CORRECT_SQL, values | difference.missing
            )
    return comparison
