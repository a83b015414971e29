"""The items that this process runs, and the handles by which the worker monitor aborts their calls."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.execution.call_slots import CallSlots
from batches.execution.claim import claim_unlocked
from relaybatch.db.group_commit import GroupCommit
from routing.calls.failures import FailureCode
from routing.transport.abort_handle import AbortHandle

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Sequence

    from batches.execution.claim import Claim


@dataclass(frozen=True, slots=True)
class InFlightItem:
    claim: Claim
    abort_handle: AbortHandle


class InFlightItems:
    """`worker_id`: the worker row under which they are claimed. `is_stopping`: the process claims nothing new.

    `slots`: how many of them may be in an upstream call. `claim(item_id)`: claims it, together with those that other
    threads claim at the same moment; None where it can't be claimed, or its row is locked.
    """

    def __init__(self, worker_id: uuid.UUID, *, slots: int) -> None:
        self.worker_id = worker_id
        self.is_stopping = False
        self.call_slots = CallSlots(slots)
        self.claim: GroupCommit[uuid.UUID, Claim | None] = GroupCommit(self._claim_group)
        self._lock = threading.Lock()
        self._reserved: set[uuid.UUID] = set()
        self._tracked: dict[uuid.UUID, InFlightItem] = {}

    def stop(self) -> None:
        """Claim nothing new, and begin no further call."""
        self.is_stopping = True
        self.call_slots.stop()

    @contextlib.contextmanager
    def reserve(self, item_id: uuid.UUID) -> Iterator[bool]:
        """Reserve the item for this thread; False while another thread of this process holds it.

        So a row that says «running, by this worker» and is reserved by no thread is an orphan of ours: a claim that was
        committed before the connection dropped, or a settle that failed.
        """
        with self._lock:
            is_first = item_id not in self._reserved
            self._reserved.add(item_id)
        try:
            yield is_first
        finally:
            if is_first:
                with self._lock:
                    self._reserved.discard(item_id)

    def reserved(self) -> set[uuid.UUID]:
        with self._lock:
            return set(self._reserved)

    @contextlib.contextmanager
    def track(self, claim: Claim) -> Iterator[AbortHandle]:
        """Make the claim's call abortable from other threads."""
        item = InFlightItem(claim, AbortHandle())
        with self._lock:
            self._tracked[claim.item_id] = item
        try:
            yield item.abort_handle
        finally:
            with self._lock:
                del self._tracked[claim.item_id]

    def tracked(self) -> list[InFlightItem]:
        with self._lock:
            return list(self._tracked.values())

    def abort_overdue(self) -> None:
        """Abort the calls whose deadline has passed."""
        for item in self.tracked():
            deadline = item.abort_handle.deadline
            if deadline is not None and time.monotonic() >= deadline:
                item.abort_handle.abort(FailureCode.TIMEOUT)

    def abort(self, item_ids: set[uuid.UUID], code: FailureCode) -> None:
        for item in self.tracked():
            if item.claim.item_id in item_ids:
                item.abort_handle.abort(code)

    def abort_all(self, code: FailureCode) -> None:
        for item in self.tracked():
            item.abort_handle.abort(code)

    def _claim_group(self, item_ids: Sequence[uuid.UUID]) -> list[Claim | None]:
        claims = claim_unlocked(item_ids, worker_id=self.worker_id)
        return [claims.get(item_id) for item_id in item_ids]
