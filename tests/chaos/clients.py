"""Callers: threads that submit, cancel, delete, retry and read at random, as several owners at once."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections import Counter
from typing import TYPE_CHECKING

from tests.chaos.deployment.catalog import OWNERS
from tests.chaos.submitted import CREATED, DIALECTS, new_submission

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.checks.live_checks import LiveChecks
    from tests.chaos.deployment.web import Reply, WebClient
    from tests.chaos.submitted import Submission

THREADS = 3
MAX_OPEN_ITEMS = 600
PAUSE_SECONDS = (0.05, 0.4)
MAX_CREATE_TRIES = 60


class Clients:
    """`orders`: all that was submitted. `retried`: tags of batches whose failed items were sent again."""

    def __init__(self, web: WebClient, live_checks: LiveChecks, *, seed: int) -> None:
        self.submissions: list[Submission] = []
        self.retried: set[str] = set()
        self.done: Counter[str] = Counter()
        self.dialects: tuple[str, ...] = ()
        self._web = web
        self._live_checks = live_checks
        self._random = random.Random(f"callers {seed}")
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name="caller", daemon=True) for _ in range(THREADS)
        ]
        self._numbers = itertools.count(1)

    def start(self) -> None:
        """Finds out first which dialects are served: a small batch of each is taken or refused."""
        self.dialects = tuple(dialect for dialect in DIALECTS if self._is_served(dialect))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def repeat_unanswered_creates(self, sleep: Callable[[float], None]) -> None:
        """Asks again for every create that never got an answer and may be repeated."""
        for order in self.submissions:
            for _ in range(MAX_CREATE_TRIES):
                if order.public_id or order.is_rejected or not order.idempotency_key:
                    break
                self._post(order)
                sleep(0.1)

    def _is_served(self, dialect: str) -> bool:
        owner = next(iter(OWNERS))
        order = new_submission(
            next(self._numbers), owner=owner, dialect=dialect, chance=self._random, items=2
        )
        self._post(order)
        if order.is_rejected:
            return False
        self.submissions.append(order)
        return True

    def _run(self) -> None:
        actions: dict[Callable[[], None], int] = {
            self._submit: 50,
            self._cancel: 8,
            self._delete: 8,
            self._resubmit: 5,
            self._read: 15,
            self._list: 5,
            self._repeat: 10,
        }
        while not self._stop.wait(self._random.uniform(*PAUSE_SECONDS)):
            self._random.choices(list(actions), list(actions.values()))[0]()

    def _submit(self) -> None:
        if self._live_checks.open_items > MAX_OPEN_ITEMS:
            return
        owner, dialect = self._random.choice(list(OWNERS)), self._random.choice(self.dialects)
        order = new_submission(next(self._numbers), owner=owner, dialect=dialect, chance=self._random)
        self.submissions.append(order)
        self._post(order)
        self.done["submitted"] += 1

    def _repeat(self) -> None:
        """The same create once more: one that was answered must be answered the same, without a second batch."""
        keyed = [order for order in self.submissions[-50:] if order.idempotency_key and not order.is_rejected]
        if keyed:
            self._post(self._random.choice(keyed))
            self.done["submitted again"] += 1

    def _post(self, order: Submission) -> None:
        order.sends += 1
        reply = self._web.call(
            self._random, "POST", order.path, owner=order.owner, body=order.body, headers=order.headers
        )
        if reply is None or reply.status == 503:
            return
        if reply.status == CREATED[order.dialect]:
            public_id = str(json.loads(reply.body)["id"])
            self._live_checks.check_create_response(order, public_id)
            order.public_id = public_id
        elif order.public_id is None and 400 <= reply.status < 500:
            order.is_rejected = True

    def _cancel(self) -> None:
        open_orders = [order for order in self._known() if not self._live_checks.has_ended(order)]
        if open_orders:
            order = self._random.choice(open_orders)
            reply = self._call(order, "POST", "/cancel")
            order.is_cancelled = True
            self.done["cancelled"] += bool(reply and reply.status == 200)

    def _delete(self) -> None:
        """Only what the watch has seen to its end, so that nothing is lost to the final look."""
        ended = [order for order in self._known() if self._live_checks.may_be_deleted(order)]
        if ended:
            order = self._random.choice(ended)
            order.is_deleted = True
            reply = self._call(order, "DELETE", "")
            self.done["deleted"] += bool(reply and reply.status < 300)

    def _resubmit(self) -> None:
        failed = [order for order in self._known() if self._live_checks.has_failed(order)]
        if failed:
            order = self._random.choice(failed)
            self.retried.add(order.tag)
            reply = self._call(order, "POST", "/retry")
            self.done["retried"] += bool(reply and reply.status == CREATED[order.dialect])

    def _read(self) -> None:
        if known := self._known():
            self._call(self._random.choice(known), "GET", "/results")

    def _list(self) -> None:
        query = {"relay": "?dialect=relay&limit=20", "chat": "?limit=20", "messages": "?limit=20"}
        dialect = self._random.choice(self.dialects)
        path = "/v1/messages/batches" if dialect == "messages" else "/v1/batches"
        self._web.call(self._random, "GET", path + query[dialect], owner=self._random.choice(list(OWNERS)))

    def _call(self, order: Submission, method: str, rest: str) -> Reply | None:
        path = f"{order.path}/{order.public_id}{rest}"
        return self._web.call(self._random, method, path, owner=order.owner)

    def _known(self) -> list[Submission]:
        return [order for order in self.submissions if order.public_id and not order.is_deleted]
