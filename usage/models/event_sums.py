"""The sums of a group of events, as database expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.db.models import Aggregate, Avg, Count, IntegerField, Max, Q, Sum

from routing.meters import METERS

if TYPE_CHECKING:
    from django.db.models.expressions import Combinable

# A late event adds cost and is not counted as a request.
IS_REQUEST = Q(late=False)


class Percentiles(Aggregate):
    """The median and the 95th percentile, each a value that occurs. One sort serves both."""

    function = "percentile_disc"
    template = "%(function)s(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = ArrayField(IntegerField())


def event_sums(*, durations: bool = True) -> dict[str, Combinable]:
    """The expressions by name. Without `durations` nothing is sorted, most of the work for a million events."""
    # No name may be a column's: Django rejects that.
    return {
        "requests": Count("id", filter=IS_REQUEST),
        "errors": Count("id", filter=IS_REQUEST & ~Q(error_kind="")),
        "unpriced": Count("id", filter=Q(cost_nanos=None)),
        "cost": Sum("cost_nanos"),
        **{f"sum_{meter}": Sum(meter) for meter in METERS},
        **(_durations() if durations else {}),
    }


def _durations() -> dict[str, Combinable]:
    return {
        "duration_avg": Avg("duration_ms", filter=IS_REQUEST),
        "duration_percentiles": Percentiles("duration_ms", filter=IS_REQUEST),
        "duration_max": Max("duration_ms", filter=IS_REQUEST),
    }
