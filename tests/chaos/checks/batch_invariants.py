"""What must hold for batches and for what surrounds them, once all is quiet."""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec
import redis

from relaybatch.quickstart.demo.commands import output_of
from relaybatch.quickstart.errors import QuickstartError
from tests.chaos.deployment.catalog import REVOKED_OWNER
from tests.chaos.deployment.deployment import EACH_KIND, ROOT

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import psycopg

    from relaybatch.quickstart.shutdown import Interruption
    from tests.chaos.checks.final_state import Evidence
    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import Place
    from tests.chaos.deployment.web import Web
    from tests.chaos.submitted import Order

WHOLE = "a submission is stored whole, and once for its Idempotency-Key"
SHOWN = "results over HTTP are the items and the answers stored for them"
MANY_LOG_LINES = 5
_UNEXPECTED = re.compile(r"broke off|could not be settled|unexpected in|Exception in|Error handling")
_OUTAGE = re.compile(r".*\b(OperationalError|InterfaceError|InternalError|AdminShutdown)\b")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Unavailable|Unwritable|Unreadable)\b|Exception in")


def check_batches(evidence: Evidence, findings: Findings, *, payloads: Path) -> None:
    counted: dict[uuid.UUID, Counter[str]] = defaultdict(Counter)
    for item in evidence.items:
        counted[item.batch_id][item.state] += 1
    for batch in evidence.batches.values():
        findings.look("every batch ends", *([] if batch.ended else [f"{batch}"]))
        if not batch.deleted:
            there = (payloads / batch.id.hex / "requests").exists()
            findings.look("a stored batch has its requests", *([] if there else [f"{batch}"]))
        counts = dict(counted[batch.id])
        wrong = batch.ended and (counts != batch.final_counts or sum(counts.values()) != batch.total_items)
        findings.look(
            "the counts of an ended batch are its items'", *([f"{batch}: {counts}"] if wrong else [])
        )


def check_submissions(evidence: Evidence, findings: Findings, *, retried: set[str]) -> None:
    """By the tag that each order's items carry."""
    stored: dict[str, set[uuid.UUID]] = defaultdict(set)
    tags = {
        row.id: row.metadata.get("tag") for row in evidence.batches.values() if "retry_of" not in row.metadata
    }
    for item in evidence.items:
        tag = item.custom_id.partition("-")[0] if item.custom_id else tags.get(item.batch_id)
        if tag:
            stored[tag].add(item.batch_id)
    for order in evidence.orders:
        findings.look(WHOLE, *_submission(order, stored[order.tag], evidence, retried))


def _submission(order: Order, found: set[uuid.UUID], evidence: Evidence, retried: set[str]) -> Iterator[str]:
    known = order.row_id
    if order.public_id and known not in found and not order.deleted:
        yield f"{order.tag}: answered with {known}, stored are {found}"
    if order.idempotency_key and len(found) > 1 and order.tag not in retried:
        yield f"{order.tag}: {len(found)} batches for one Idempotency-Key"
    for batch in found & evidence.batches.keys():
        if order.tag not in retried and evidence.batches[batch].total_items != len(order.hashes):
            yield f"{order.tag}: {evidence.batches[batch].total_items} of {len(order.hashes)} items"


def check_shown(evidence: Evidence, findings: Findings, web: Web) -> None:
    """By any web process, for every batch whose owner may still read."""
    chance = random.Random(1)
    items: dict[uuid.UUID, dict[int, Any]] = defaultdict(dict)
    for item in evidence.items:
        items[item.batch_id][item.idx] = item
    for order in evidence.orders:
        batch = order.row_id
        if batch not in evidence.batches or order.deleted or order.owner == REVOKED_OWNER:
            continue
        reply = web.call(chance, "GET", f"{order.path}/{order.public_id}/results", owner=order.owner)
        if reply is None or reply.status != 200:
            findings.look(SHOWN, f"{order.public_id}: {reply and reply.status}")
            continue
        wrong = _shown(order, reply.body, items[batch], evidence)
        findings.look(SHOWN, *wrong, times=len(order.hashes))


class _RelayResult(msgspec.Struct):
    idx: int
    state: str
    response: msgspec.Raw = msgspec.Raw(b"")


class _RelayResults(msgspec.Struct):
    results: list[_RelayResult]


def _shown(order: Order, body: bytes, items: dict[int, Any], evidence: Evidence) -> Iterator[str]:
    if order.dialect == "relay":
        results = msgspec.json.decode(body, type=_RelayResults).results
        found = [(one.idx, one.state, bytes(one.response)) for one in results]
    else:
        lines = [json.loads(line) for line in body.decode().split("\n")[:-1]]
        found = [_line(line) for line in lines]
    if [idx for idx, _, _ in found] != sorted(items):
        yield f"{order.public_id}: shows items {[idx for idx, _, _ in found]}"
        return
    for idx, state, response in found:
        answers = [one.answer for one in evidence.served_to(items[idx]) if one.usable]
        values = answers if order.dialect == "relay" else [_canonical(json.loads(one)) for one in answers]
        if state != items[idx].state or (state == "completed" and response not in values):
            yield f"{order.public_id}[{idx}]: shows {state} {response[:60]!r}, is {items[idx].state}"


def _line(line: dict[str, Any]) -> tuple[int, str, bytes]:
    states = {"succeeded": "completed", "errored": "discarded", "canceled": "cancelled", "expired": "expired"}
    result = line["result"]
    message = _canonical(result["message"]) if "message" in result else b""
    return int(line["custom_id"].rpartition("-")[2]), states[result["type"]], message


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def check_surroundings(
    place: Place,
    database: psycopg.Connection[Any],
    findings: Findings,
    *,
    evidence: Evidence,
    wait: Callable[[Callable[[], bool]], bool],
) -> None:
    def quiet() -> bool:
        with redis.Redis.from_url(place.servers.redis_url) as client:
            return bool(client.llen("items") == 0)

    def one_row_each() -> bool:
        rows = database.execute("SELECT pid FROM batches_worker").fetchall()
        return sorted(int(pid) for (pid,) in rows) == sorted(worker.pid for worker in place.of_kind("worker"))

    def removed() -> bool:
        return not list(_left_folders(place, evidence))

    findings.look("the broker is empty at the end", *([] if wait(quiet) else ["messages are left"]))
    findings.look(
        f"{EACH_KIND} live workers, {EACH_KIND} worker rows", *([] if wait(one_row_each) else ["others"])
    )
    findings.look(
        "payloads of deleted batches are gone",
        *([] if wait(removed) else list(_left_folders(place, evidence))),
    )


def _left_folders(place: Place, evidence: Evidence) -> Iterator[str]:
    """Of batches that existed and are gone. A submission that was killed may leave one, for an hour."""
    known = {item.batch_id.hex for item in evidence.items}
    kept = {batch.hex for batch, row in evidence.batches.items() if not row.deleted}
    for path in place.payloads.iterdir():
        if path.name in known - kept:
            yield path.name


def check_totals(place: Place, findings: Findings, *, interruption: Interruption) -> None:
    """By the operator's own command, which exits 1 when one differs."""
    name = "usage totals are the sums of the events"
    command = [sys.executable, "manage.py", "check_usage", "--json"]
    try:
        told = output_of(
            "check_usage", command, root=ROOT, environment=place.environment, interruption=interruption
        )
    except QuickstartError as different:
        findings.look(name, str(different))
    else:
        findings.look(name, times=int(json.loads(told)["totals"]))


def check_logs(place: Place, findings: Findings) -> None:
    """Outages are told as warnings; anything else that broke off has a line, or a traceback, of its own kind."""
    for path in sorted((place.home / "logs").glob("*-*.log")):
        lines = path.read_text(errors="replace").splitlines()
        found = [f"{path.name}: {line[:300]}" for line in lines if _is_unexpected(line)]
        findings.look("no process tells of anything unexpected", *found[:MANY_LOG_LINES], times=len(lines))


def _is_unexpected(line: str) -> bool:
    if line.startswith("{"):
        return bool(_UNEXPECTED.search(line)) and not _OUTAGE.search(line)
    return bool(_RAISED.match(line)) and not _OUTAGE.match(line)
