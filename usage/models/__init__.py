"""The rows of usage: events, and their running totals."""

from usage.models.event_filter import EventFilter
from usage.models.usage_event import UsageEvent, UsageEventQuerySet
from usage.models.usage_total import UsageTotal

__all__ = ["EventFilter", "UsageEvent", "UsageEventQuerySet", "UsageTotal"]
