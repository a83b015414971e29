"""Invariants of batches, and of broker, workers, payloads, totals and logs, at the end of a run."""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec
import redis

from relaybatch.quickstart.demo.run_step import run_step
from relaybatch.quickstart.errors import QuickstartError
from tests.chaos.deployment.catalog import REVOKED_OWNER
from tests.chaos.deployment.deployment import PROCESSES_PER_KIND, ROOT

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import psycopg

    from relaybatch.quickstart.shutdown import Shutdown
    from tests.chaos.checks.final_state import FinalState
    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.deployment.web import WebClient
    from tests.chaos.submitted import Submission

STORED_WHOLE = "a submission is stored whole, and once for its Idempotency-Key"
RESULTS_MATCH = "results over HTTP are the items and the answers stored for them"
MAX_LOG_LINES = 5
_GUNICORN_ERROR = re.compile(r"Exception in|Error handling")
# An outage of the payload store is logged with its exception, and is what the run injects.
_OUTAGE_EVENT = "submission not stored"
_OUTAGE = re.compile(r".*\b(OperationalError|InterfaceError|InternalError|AdminShutdown)\b")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Unavailable|Rejected|Denied)\b|Exception in")


def check_batches(final_state: FinalState, findings: Findings, *, payloads: Path) -> None:
    counted: dict[uuid.UUID, Counter[str]] = defaultdict(Counter)
    for item in final_state.items:
        counted[item.batch_id][item.state] += 1
    for batch in final_state.batches.values():
        findings.record("every batch ends", *([] if batch.ended else [f"{batch}"]))
        if not batch.deleted and batch.total_items:
            there = (payloads / batch.id.hex / "requests").exists()
            findings.record("a stored batch has its requests", *([] if there else [f"{batch}"]))
        counts = dict(counted[batch.id])
        wrong = batch.ended and (counts != batch.final_counts or sum(counts.values()) != batch.total_items)
        findings.record(
            "the counts of an ended batch are its items'", *([f"{batch}: {counts}"] if wrong else [])
        )


def check_submissions(final_state: FinalState, findings: Findings, *, retried: set[str]) -> None:
    """Batches are matched with submissions by the tag that their items contain."""
    stored: dict[str, set[uuid.UUID]] = defaultdict(set)
    tags = {
        row.id: row.metadata.get("tag")
        for row in final_state.batches.values()
        if "retry_of" not in row.metadata
    }
    for item in final_state.items:
        tag = item.custom_id.partition("-")[0] if item.custom_id else tags.get(item.batch_id)
        if tag:
            stored[tag].add(item.batch_id)
    for submission in final_state.submissions:
        findings.record(STORED_WHOLE, *_submission(submission, stored[submission.tag], final_state, retried))


def _submission(
    submission: Submission, found: set[uuid.UUID], final_state: FinalState, retried: set[str]
) -> Iterator[str]:
    known = submission.row_id
    row = final_state.batches.get(known)
    # Cancelled while its file was validated, it has no items.
    is_empty = submission.is_cancelled and row is not None and row.dialect == "openai" and not row.total_items
    if submission.public_id and known not in found and not submission.is_deleted and not is_empty:
        yield f"{submission.tag}: answered with {known}, stored are {found}"
    if submission.idempotency_key and len(found) > 1 and submission.tag not in retried:
        yield f"{submission.tag}: {len(found)} batches for one Idempotency-Key"
    for batch in found & final_state.batches.keys():
        if submission.tag not in retried and final_state.batches[batch].total_items != len(submission.hashes):
            yield f"{submission.tag}: {final_state.batches[batch].total_items} of {len(submission.hashes)} items"


def check_results_over_http(final_state: FinalState, findings: Findings, web: WebClient) -> None:
    """Read the results of every batch whose owner may still read, from any web process."""
    rng = random.Random(1)
    items: dict[uuid.UUID, dict[int, Any]] = defaultdict(dict)
    for item in final_state.items:
        items[item.batch_id][item.idx] = item
    for submission in final_state.submissions:
        batch = submission.row_id
        if batch not in final_state.batches or submission.is_deleted or submission.owner == REVOKED_OWNER:
            continue
        reply = web.call(
            rng, "GET", f"{submission.path}/{submission.public_id}/results", owner=submission.owner
        )
        if reply is None or reply.status != 200:
            findings.record(RESULTS_MATCH, f"{submission.public_id}: {reply and reply.status}")
            continue
        wrong = _compare_results(submission, reply.body, items[batch], final_state)
        findings.record(RESULTS_MATCH, *wrong, times=len(submission.hashes))


class _RelayResult(msgspec.Struct):
    idx: int
    state: str
    response: msgspec.Raw = msgspec.Raw(b"")


class _RelayResults(msgspec.Struct):
    results: list[_RelayResult]


def _compare_results(
    submission: Submission, body: bytes, items: dict[int, Any], final_state: FinalState
) -> Iterator[str]:
    if submission.dialect == "relay":
        results = msgspec.json.decode(body, type=_RelayResults).results
        found = [(one.idx, one.state, bytes(one.response)) for one in results]
    else:
        lines = [json.loads(line) for line in body.decode().split("\n")[:-1]]
        found = [output_line(line) if submission.dialect == "openai" else _line(line) for line in lines]
    if [idx for idx, _, _ in found] != sorted(items):
        yield f"{submission.public_id}: shows items {[idx for idx, _, _ in found]}"
        return
    for idx, state, response in found:
        answers = [one.answer for one in final_state.served_to(items[idx]) if one.is_usable]
        values = (
            answers if submission.dialect == "relay" else [_canonical(json.loads(one)) for one in answers]
        )
        if state != items[idx].state or (state == "completed" and response not in values):
            yield f"{submission.public_id}[{idx}]: shows {state} {response[:60]!r}, is {items[idx].state}"


def _line(line: dict[str, Any]) -> tuple[int, str, bytes]:
    states = {"succeeded": "completed", "errored": "discarded", "canceled": "cancelled", "expired": "expired"}
    result = line["result"]
    message = _canonical(result["message"]) if "message" in result else b""
    return int(line["custom_id"].rpartition("-")[2]), states[result["type"]], message


def output_line(line: dict[str, Any]) -> tuple[int, str, bytes]:
    """Index, state and answer of a line of OpenAI's files."""
    states = {"batch_cancelled": "cancelled", "batch_expired": "expired"}
    idx = int(line["custom_id"].rpartition("-")[2])
    if line["response"] and line["response"]["status_code"] == 200:
        return idx, "completed", _canonical(line["response"]["body"])
    return idx, states.get(line["error"]["code"] if line["error"] else "", "discarded"), b""


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def check_cleanup(
    deployment: ChaosDeployment,
    database: psycopg.Connection[Any],
    findings: Findings,
    *,
    final_state: FinalState,
    wait: Callable[[Callable[[], bool]], bool],
) -> None:
    def quiet() -> bool:
        with redis.Redis.from_url(deployment.servers.redis_url) as client:
            return bool(client.llen("items") == 0)

    def one_row_each() -> bool:
        rows = database.execute("SELECT pid FROM batches_worker").fetchall()
        return sorted(int(pid) for (pid,) in rows) == sorted(
            worker.pid for worker in deployment.of_kind("worker")
        )

    def removed() -> bool:
        return not list(_left_folders(deployment, final_state))

    findings.record("the broker is empty at the end", *([] if wait(quiet) else ["messages are left"]))
    findings.record(
        f"{PROCESSES_PER_KIND} live workers, {PROCESSES_PER_KIND} worker rows",
        *([] if wait(one_row_each) else ["others"]),
    )
    findings.record(
        "payloads of deleted batches are gone",
        *([] if wait(removed) else list(_left_folders(deployment, final_state))),
    )


def _left_folders(deployment: ChaosDeployment, final_state: FinalState) -> Iterator[str]:
    """Folders of deleted batches. A submission that was killed may leave one for an hour; that is not counted."""
    known = {item.batch_id.hex for item in final_state.items}
    kept = {batch.hex for batch, row in final_state.batches.items() if not row.deleted}
    for path in deployment.payloads.iterdir():
        if path.name in known - kept:
            yield path.name


def check_usage_totals(deployment: ChaosDeployment, findings: Findings, *, shutdown: Shutdown) -> None:
    """Run the operator's command, which exits with 1 if a total differs."""
    name = "usage totals are the sums of the events"
    command = [sys.executable, "manage.py", "check_usage", "--json"]
    try:
        output = run_step(
            "check_usage", command, root=ROOT, environment=deployment.environment, shutdown=shutdown
        )
    except QuickstartError as different:
        findings.record(name, str(different))
    else:
        findings.record(name, times=int(json.loads(output)["totals"]))


def check_logs(deployment: ChaosDeployment, findings: Findings) -> None:
    """Outages are logged as warnings. Any other exception has a log line with `exception`, or a traceback."""
    name = "no process logs an unexpected exception"
    paths = sorted((deployment.home / "logs").glob("*-*.log"))
    findings.record(name, *([] if paths else ["there are no logs"]), times=0)
    for path in paths:
        lines = path.read_text(errors="replace").splitlines()
        found = [f"{path.name}: {line[:300]}" for line in lines if _is_unexpected(line)]
        findings.record(name, *found[:MAX_LOG_LINES], times=len(lines))


def _is_unexpected(line: str) -> bool:
    record = _log_record(line)
    if record:
        is_error = "exception" in record or bool(_GUNICORN_ERROR.search(record.get("message", "")))
        return is_error and record.get("event") != _OUTAGE_EVENT and not _OUTAGE.search(line)
    return bool(_RAISED.match(line)) and not _OUTAGE.match(line)


def _log_record(line: str) -> dict[str, str]:
    """The line as an event; empty for other text, such as the beginning of a line whose process was killed."""
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
