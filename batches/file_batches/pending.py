"""The batches that wait for a step of the sweeper's process: the oldest of each owner first, so that nobody's many
files hold up another's one."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from batches.payloads import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError
from relaybatch.db.isolation import run_isolated

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable

    from batches.models.batch import BatchQuerySet

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 60.0
STORE_ERRORS = (PayloadReadError, PayloadStoreUnavailable, PayloadWriteError)


class PendingBatches:
    """`waiting` gives the batches that wait, `step` does one. A batch that fails pauses, longer each time."""

    def __init__(
        self,
        name: str,
        waiting: Callable[[], BatchQuerySet],
        step: Callable[[uuid.UUID], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._waiting = waiting
        self._step = step
        self._clock = clock
        # By batch: until when it pauses, and for how long the next time.
        self._pauses: dict[uuid.UUID, tuple[float, float]] = {}

    def run(self, *, may_go_on: Callable[[], bool]) -> None:
        """Do what waits, until nothing is left but what pauses. Raises DATABASE_UNAVAILABLE."""
        while batch_ids := self._next_of_each_owner():
            for batch_id in batch_ids:
                if not may_go_on():
                    return
                self._run_step(batch_id)

    def _next_of_each_owner(self) -> list[uuid.UUID]:
        now = self._clock()
        self._delete_old_pauses(before=now - MAX_PAUSE_SECONDS)
        paused = [batch_id for batch_id, (until, _) in self._pauses.items() if until > now]
        rows = self._waiting().exclude(id__in=paused).order_by("owner_id", "id").distinct("owner_id")
        return sorted(rows.values_list("id", flat=True))

    def _run_step(self, batch_id: uuid.UUID) -> None:
        if run_isolated(self._name, partial(self._try_step, batch_id), batch_id=batch_id):
            return
        self._pause(batch_id)

    def _try_step(self, batch_id: uuid.UUID) -> None:
        try:
            self._step(batch_id)
        except STORE_ERRORS as error:
            if not self._waiting().filter(id=batch_id).exists():
                return  # cancelled and deleted meanwhile, with what was written
            logger.warning("payloads unavailable", extra={"batch_id": batch_id, "reason": str(error)})
            self._pause(batch_id)
        else:
            self._pauses.pop(batch_id, None)

    def _delete_old_pauses(self, *, before: float) -> None:
        """Of batches that wait no more, as they were cancelled; one that waits is tried as soon as its pause ends."""
        self._pauses = {batch_id: pause for batch_id, pause in self._pauses.items() if pause[0] > before}

    def _pause(self, batch_id: uuid.UUID) -> None:
        _, seconds = self._pauses.get(batch_id, (0.0, FIRST_PAUSE_SECONDS))
        self._pauses[batch_id] = (self._clock() + seconds, min(2 * seconds, MAX_PAUSE_SECONDS))
