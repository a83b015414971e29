"""The items that this process runs, and the lines by which the watch thread can cut them."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routing.upstream.call import Line

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator

    from batches.execution.claim import Claim


@dataclass(frozen=True, slots=True)
class RunningItem:
    claim: Claim
    line: Line


class RunningItems:
    """`worker_id`: the worker row under which they are claimed. `stopping`: the process takes nothing new."""

    def __init__(self, worker_id: uuid.UUID) -> None:
        self.worker_id = worker_id
        self.stopping = False
        self._lock = threading.Lock()
        self._handled: set[uuid.UUID] = set()
        self._items: dict[uuid.UUID, RunningItem] = {}

    @contextlib.contextmanager
    def handling(self, item_id: uuid.UUID) -> Iterator[bool]:
        """True for the one slot of this process that looks at the item; false while another one does.

        So a row that says «running, by this worker» and is handled by nobody here is an orphan of ours: a claim that
        was committed unheard, or a settle that failed.
        """
        with self._lock:
            first = item_id not in self._handled
            self._handled.add(item_id)
        try:
            yield first
        finally:
            if first:
                with self._lock:
                    self._handled.discard(item_id)

    def handled(self) -> set[uuid.UUID]:
        with self._lock:
            return set(self._handled)

    @contextlib.contextmanager
    def line_of(self, claim: Claim) -> Iterator[Line]:
        item = RunningItem(claim, Line())
        with self._lock:
            self._items[claim.item_id] = item
        try:
            yield item.line
        finally:
            with self._lock:
                del self._items[claim.item_id]

    def now(self) -> list[RunningItem]:
        with self._lock:
            return list(self._items.values())

    def cut_overdue(self) -> None:
        for item in self.now():
            if item.line.deadline is not None and time.monotonic() >= item.line.deadline:
                item.line.cut("timeout")

    def cut(self, item_ids: set[uuid.UUID], reason: str) -> None:
        for item in self.now():
            if item.claim.item_id in item_ids:
                item.line.cut(reason)

    def cut_all(self, reason: str) -> None:
        for item in self.now():
            item.line.cut(reason)
