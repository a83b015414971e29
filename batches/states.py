"""The states of an item and the modes of a batch, by their names in the database and on the wire. Imports no Django."""

from __future__ import annotations

from enum import StrEnum


class ItemState(StrEnum):
    """In the order in which counts show them. The last four are final."""

    AVAILABLE = "available"
    RUNNING = "running"
    COMPLETED = "completed"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


ITEM_STATES = tuple(state.value for state in ItemState)


class RateLimitMode(StrEnum):
    """What an item does when its policy's limit is spent: `on_rate_limit`."""

    FAIL = "fail"
    WAIT = "wait"
