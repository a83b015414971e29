"""Client threads that submit, cancel, delete, resubmit and read at random, as several owners."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections import Counter
from typing import TYPE_CHECKING

from tests.chaos.checks.live_checks import TO_THE_END
from tests.chaos.deployment.catalog import OWNERS
from tests.chaos.submitted import CREATED, DIALECTS, PATHS, new_submission

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.checks.findings import Findings
    from tests.chaos.checks.live_checks import LiveChecks
    from tests.chaos.deployment.web import Reply, WebClient
    from tests.chaos.submitted import Submission

THREADS = 3
MAX_OPEN_ITEMS = 600
PAUSE_SECONDS = (0.05, 0.4)
MAX_CREATE_TRIES = 60


class Clients:
    """`submissions`: everything submitted. `retried`: tags of batches whose failed items were resubmitted."""

    def __init__(self, web: WebClient, live_checks: LiveChecks, findings: Findings, *, seed: int) -> None:
        self.submissions: list[Submission] = []
        self.retried: set[str] = set()
        self.actions: Counter[str] = Counter()
        self.dialects: tuple[str, ...] = ()
        self._web = web
        self._live_checks = live_checks
        self._random = random.Random(f"clients {seed}")
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=findings.run_to_the_end, args=(TO_THE_END, self._run), name="client", daemon=True
            )
            for _ in range(THREADS)
        ]
        self._numbers = itertools.count(1)

    def start(self) -> None:
        """Find out which dialects are served, by a small batch of each, and start the threads."""
        self.dialects = tuple(dialect for dialect in DIALECTS if self._is_served(dialect))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def repeat_unanswered_creates(self, sleep: Callable[[float], None]) -> None:
        """Repeat every create that got no response and has an Idempotency-Key."""
        for submission in self.submissions:
            for _ in range(MAX_CREATE_TRIES):
                if submission.public_id or submission.is_rejected or not submission.idempotency_key:
                    break
                self._post(submission)
                sleep(0.1)

    def _is_served(self, dialect: str) -> bool:
        owner = next(iter(OWNERS))
        submission = new_submission(
            next(self._numbers), owner=owner, dialect=dialect, rng=self._random, items=2
        )
        self._post(submission)
        if submission.is_rejected:
            return False
        self.submissions.append(submission)
        return True

    def _run(self) -> None:
        weights: dict[Callable[[], None], int] = {
            self._submit: 50,
            self._cancel: 8,
            self._delete: 8,
            self._resubmit: 5,
            self._read: 15,
            self._list: 5,
            self._repeat: 10,
        }
        while not self._stop.wait(self._random.uniform(*PAUSE_SECONDS)):
            self._random.choices(list(weights), list(weights.values()))[0]()

    def _submit(self) -> None:
        if self._live_checks.open_items > MAX_OPEN_ITEMS:
            return
        owner, dialect = self._random.choice(list(OWNERS)), self._random.choice(self.dialects)
        submission = new_submission(next(self._numbers), owner=owner, dialect=dialect, rng=self._random)
        self.submissions.append(submission)
        self._post(submission)
        self.actions["submitted"] += 1

    def _repeat(self) -> None:
        """Repeat a create: it must return the same batch, if it was answered before."""
        keyed = [
            submission
            for submission in self.submissions[-50:]
            if submission.idempotency_key and not submission.is_rejected
        ]
        if keyed:
            self._post(self._random.choice(keyed))
            self.actions["submitted again"] += 1

    def _post(self, submission: Submission) -> None:
        submission.sends += 1
        body = self._upload(submission) if submission.content else submission.body
        if body is None:
            return
        reply = self._web.call(
            self._random,
            "POST",
            submission.path,
            owner=submission.owner,
            body=body,
            headers=submission.headers,
        )
        if reply is None or reply.status == 503:
            return
        if reply.status == CREATED[submission.dialect]:
            public_id = str(json.loads(reply.body)["id"])
            self._live_checks.check_create_response(submission, public_id)
            submission.public_id = public_id
        elif submission.public_id is None and 400 <= reply.status < 500:
            submission.is_rejected = True

    def _upload(self, submission: Submission) -> bytes | None:
        """Upload the file of the requests; the body of the create, None while there is no answer."""
        reply = self._web.call(
            self._random,
            "POST",
            "/v1/files",
            owner=submission.owner,
            body=submission.upload_body,
            headers=submission.upload_headers,
        )
        if reply is None or reply.status != 200:
            submission.is_rejected = (
                submission.public_id is None and reply is not None and 400 <= reply.status < 500
            )
            return None
        file_id = json.loads(reply.body)["id"]
        return f'{{"input_file_id": "{file_id}", '.encode() + submission.body

    def _cancel(self) -> None:
        unfinished = [
            submission for submission in self._known() if not self._live_checks.has_ended(submission)
        ]
        if unfinished:
            submission = self._random.choice(unfinished)
            reply = self._call(submission, "POST", "/cancel")
            submission.is_cancelled = True
            self.actions["cancelled"] += bool(reply and reply.status == 200)

    def _delete(self) -> None:
        """Delete only a batch whose items the live checks have all seen final, for the checks at the end."""
        ended = [submission for submission in self._known() if self._live_checks.may_be_deleted(submission)]
        if ended:
            submission = self._random.choice(ended)
            submission.is_deleted = True
            reply = self._call(submission, "DELETE", "")
            self.actions["deleted"] += bool(reply and reply.status < 300)

    def _resubmit(self) -> None:
        failed = [submission for submission in self._known() if self._live_checks.has_failed(submission)]
        if failed:
            submission = self._random.choice(failed)
            self.retried.add(submission.tag)
            reply = self._call(submission, "POST", "/retry")
            self.actions["retried"] += bool(reply and reply.status == CREATED[submission.dialect])

    def _read(self) -> None:
        if known := self._known():
            self._call(self._random.choice(known), "GET", "/results")

    def _list(self) -> None:
        paths = [f"{PATHS[dialect]}?limit=20" for dialect in self.dialects]
        paths += ["/v1/batches?dialect=relay&limit=20", "/v1/files?limit=20"]
        path = self._random.choice(paths)
        self._web.call(self._random, "GET", path, owner=self._random.choice(list(OWNERS)))

    def _call(self, submission: Submission, method: str, rest: str) -> Reply | None:
        path = f"{submission.path}/{submission.public_id}{rest}"
        return self._web.call(self._random, method, path, owner=submission.owner)

    def _known(self) -> list[Submission]:
        return [
            submission
            for submission in self.submissions
            if submission.public_id and not submission.is_deleted
        ]
