"""Which events are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """`columns`: the allowed values of each column. `start` is inclusive, `end` exclusive; None = unbounded."""

    columns: Mapping[str, tuple[str, ...]]
    statuses: tuple[int, ...] = ()
    status_classes: tuple[int, ...] = ()
    start: datetime | None = None
    end: datetime | None = None
