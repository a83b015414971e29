"""Invariants that must hold at any time, checked by HTTP and by SQL during the whole run."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import class_row

from batches.execution.call_slots import threads_for
from tests.chaos.deployment.deployment import SLOTS

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.deployment.web import WebClient
    from tests.chaos.submitted import Submission

ADD_UP = "counts add up to the items, at every poll"
ONE_INSTANT = "counts and items of one answer are of one instant"
ONCE_FINAL = "a final state never changes"
TO_THE_END = "live checks and clients run to the end"
ONE_BATCH = "one Idempotency-Key, one batch"
FEW_AHEAD = "a worker holds no more items than it has threads"
SQL_INTERVAL_SECONDS = 0.5
HTTP_INTERVAL_SECONDS = 0.05

_COUNTS = """
SELECT b.id, b.total_items, b.max_attempts, b.ended_at IS NOT NULL, b.final_counts,
    (SELECT jsonb_object_agg(state, n) FROM (
        SELECT state, count(*) AS n FROM batches_batchitem WHERE batch_id = b.id GROUP BY state) AS c),
    EXISTS (SELECT FROM batches_batchitem WHERE batch_id = b.id AND state IN ('available', 'running'))
FROM batches_batch b WHERE b.deleted_at IS NULL
"""
_FINAL_ITEMS = """
SELECT id, batch_id, idx, custom_id, state, attempt, excused, claim_no, error_code, response_length,
    extract(epoch FROM finished_at)::text AS finished_at
FROM batches_batchitem WHERE finished_at IS NOT NULL
"""
_HELD = """
SELECT worker_id, count(*) FROM batches_batchitem WHERE state = 'running' GROUP BY worker_id
"""
_SESSIONS = """
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'chaos'
"""


@dataclass(frozen=True, slots=True)
class FinalItem:
    id: uuid.UUID
    batch_id: uuid.UUID
    idx: int
    custom_id: str | None
    state: str
    attempt: int
    excused: int
    claim_no: int
    error_code: str
    response_length: int | None
    finished_at: str


class LiveChecks:
    """`finals`: every final item ever seen, also of deleted batches. `open_items`: at the last check."""

    def __init__(self, deployment: ChaosDeployment, web: WebClient, findings: Findings, *, seed: int) -> None:
        self.finals: dict[uuid.UUID, FinalItem] = {}
        self.open_items = 0
        self.max_sessions = 0
        self.max_attempts: dict[uuid.UUID, int] = {}
        self.submissions: Sequence[Submission] = ()
        self._deployment = deployment
        self._web = web
        self._findings = findings
        self._random = random.Random(f"live checks {seed}")
        self._ended: set[uuid.UUID] = set()
        self._failed: set[uuid.UUID] = set()
        self._final_of: dict[uuid.UUID, int] = {}
        self._total_of: dict[uuid.UUID, int] = {}
        self._last_states: dict[uuid.UUID, dict[int, str]] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=findings.run_to_the_end, args=(TO_THE_END, run), name="live checks", daemon=True
            )
            for run in (self._run_sql_checks, self._run_http_checks)
        ]

    def start(self, submissions: Sequence[Submission]) -> None:
        self.submissions = submissions
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Check the rows once more, and stop."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def has_ended(self, submission: Submission) -> bool:
        return bool(submission.public_id) and submission.row_id in self._ended

    def has_failed(self, submission: Submission) -> bool:
        """Whether it has ended with failed items."""
        return self.has_ended(submission) and submission.row_id in self._failed

    def may_be_deleted(self, submission: Submission) -> bool:
        """Whether it has ended, and all of its items were seen final."""
        if not self.has_ended(submission):
            return False
        batch = submission.row_id
        return self._final_of.get(batch, 0) == self._total_of[batch]

    def check_create_response(self, submission: Submission, public_id: str) -> None:
        if submission.idempotency_key and submission.public_id:
            other = public_id != submission.public_id
            self._findings.record(
                ONE_BATCH, *([f"{submission.tag}: {submission.public_id}, {public_id}"] if other else [])
            )

    def _run_sql_checks(self) -> None:
        database: psycopg.Connection[Any] | None = None
        last_failures = 0
        while True:
            over = self._stop.wait(SQL_INTERVAL_SECONDS)
            try:
                database = database or self._deployment.database(seconds=2)
                self._check_counts(database)
                self._check_final_items(database)
                self._check_held_items(database)
            except psycopg.OperationalError:
                last_failures += over
                if last_failures > 1:  # no more faults: on a new connection, the last check has to succeed
                    raise
                database = None
                continue
            if over:
                break
        if database:
            database.close()

    def _check_counts(self, database: psycopg.Connection[Any]) -> None:
        open_items = 0
        for batch, total, max_attempts, ended, final_counts, counts, is_open in database.execute(
            _COUNTS
        ).fetchall():
            counts = counts or {}
            wrong = sum(counts.values()) != total or (ended and (final_counts != counts or is_open))
            message = f"batch {batch}: {counts} of {total}, final {final_counts}"
            self._findings.record(ADD_UP, *([message] if wrong else []))
            self._total_of[batch], self.max_attempts[batch] = total, max_attempts
            open_items += counts.get("available", 0) + counts.get("running", 0)
            if ended:
                self._ended.add(batch)
            if counts.get("discarded"):
                self._failed.add(batch)
        self.open_items = open_items
        row = database.execute(_SESSIONS).fetchone()
        self.max_sessions = max(self.max_sessions, row[0] if row else 0)

    def _check_final_items(self, database: psycopg.Connection[Any]) -> None:
        with database.cursor(row_factory=class_row(FinalItem)) as cursor:
            items = cursor.execute(_FINAL_ITEMS).fetchall()
        for item in items:
            seen = self.finals.setdefault(item.id, item)
            if seen is item:
                self._final_of[item.batch_id] = self._final_of.get(item.batch_id, 0) + 1
            self._findings.record(ONCE_FINAL, *([f"{seen} became {item}"] if seen != item else []))

    def _check_held_items(self, database: psycopg.Connection[Any]) -> None:
        for worker_id, count in database.execute(_HELD).fetchall():
            is_wrong = count > threads_for(SLOTS)
            self._findings.record(FEW_AHEAD, *([f"worker {worker_id}: {count} items"] if is_wrong else []))

    def _run_http_checks(self) -> None:
        while not self._stop.wait(HTTP_INTERVAL_SECONDS):
            known = [
                submission
                for submission in self.submissions
                if submission.public_id and not submission.is_deleted
            ]
            if known:
                self._check_status(self._random.choice(known[-60:]))

    def _check_status(self, submission: Submission) -> None:
        reply = self._web.call(
            self._random, "GET", f"{submission.path}/{submission.public_id}", owner=submission.owner
        )
        if reply is None or reply.status != 200:
            return
        status = json.loads(reply.body)
        if submission.dialect == "openai":
            self._check_file_batch(submission, status)
            return
        counts, total = _reported_counts(submission, status)
        message = f"{submission.dialect} {submission.public_id}: shows {counts} of {total}"
        self._findings.record(
            ADD_UP,
            *([message] if sum(counts.values()) != total or min(counts.values(), default=0) < 0 else []),
        )
        if submission.dialect == "relay":
            self._compare_items(submission, status)

    def _check_file_batch(self, submission: Submission, status: dict[str, Any]) -> None:
        """It has no items, or all of them; cancelled and expired ones are in neither count."""
        counts, all_items = status["request_counts"], len(submission.hashes)
        is_right = counts["total"] in (0, all_items) and counts["completed"] + counts["failed"] <= all_items
        message = f"openai {submission.public_id}: shows {counts} of {all_items}"
        self._findings.record(ADD_UP, *([] if is_right else [message]))

    def _compare_items(self, submission: Submission, status: dict[str, Any]) -> None:
        seen = self._last_states.setdefault(submission.row_id, {})
        now = {item["idx"]: item["state"] for item in status["items"]}
        if sorted(now) != list(range(len(submission.hashes))):
            self._findings.record(ADD_UP, f"{submission.public_id}: shows items {sorted(now)}")
        counted = Counter(now.values())
        message = f"{submission.public_id}: shows {status['counts']} beside items that are {dict(counted)}"
        self._findings.record(ONE_INSTANT, *([message] if status["counts"] != counted else []))
        changed = [
            f"{submission.public_id}[{idx}]: {was} became {now.get(idx)}"
            for idx, was in seen.items()
            if now.get(idx) != was
        ]
        self._findings.record(ONCE_FINAL, *changed)
        seen.update((idx, state) for idx, state in now.items() if state not in ("available", "running"))


def _reported_counts(submission: Submission, status: dict[str, Any]) -> tuple[dict[str, int], int]:
    """Counts and total of a status. OpenAI's own three counts of the chat dialect are left out."""
    if submission.dialect == "relay":
        return status["counts"], status["TotalItems"]
    names = ("processing", "succeeded", "errored", "canceled", "expired")
    return {name: status["request_counts"][name] for name in names}, len(submission.hashes)
