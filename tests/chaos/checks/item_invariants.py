"""What must hold for each item: attempts, sends, usage and result, as rows, files and the upstream tell them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from tests.chaos.deployment.upstream_responses import KINDS, tokens_of

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.chaos.checks.final_state import Event, FinalState
    from tests.chaos.checks.findings import Findings
    from tests.chaos.checks.live_checks import FinalItem
    from tests.chaos.deployment.upstream import Served

FOREIGN = "no item has the answer to another one's request"
MAX_SENDS_PER_ATTEMPT = 3
MAX_EXCUSED_403S = 3
RESPONSES_PER_FOLDER = 1000


def check_items(evidence: FinalState, findings: Findings, *, max_attempts: dict[uuid.UUID, int]) -> None:
    for item in evidence.items:
        events, served = evidence.events_of(item), evidence.served_to(item)
        allowed = max_attempts[item.batch_id]
        for name, wrong in (
            ("attempts that are not excused are at most max_attempts", _attempts(item, allowed)),
            (
                "an attempt is excused only for 401 and 403, and of 403 three in an item",
                _excused(item, events),
            ),
            ("an attempt that its upstream refused with 401 or 403 costs nothing", _refused(item, events)),
            ("every counted attempt left one event, and nothing else did", _one_event_each(item, events)),
            ("every send is explained by an attempt", _sends(item, events, served)),
            ("no attempt uses a host key twice", _keys(item, served)),
            ("nothing is sent in an attempt after an answer that ends it", _after_answers(item, served)),
            ("a late event goes with a lost worker's", _late(item, events)),
        ):
            findings.record(name, *wrong)
    _check_usage(evidence, findings)
    findings.record(
        "every request was for an item that exists",
        *([f"{evidence.unknown_items} items"] if evidence.unknown_items else []),
        times=len(evidence.served),
    )


def check_requests(evidence: FinalState, findings: Findings) -> None:
    """The body of each request is what was submitted for some item; for that very item, where it is known which."""
    hashes = {h: (order.tag, idx) for order in evidence.submissions for idx, h in enumerate(order.hashes)}
    items = {item.id: item for item in evidence.items}
    for item_id, requests in evidence.served.items():
        item = items.get(item_id)
        for one in requests:
            found = hashes.get(one.body_hash)
            wrong = found is None or (item is not None and not _is_for(item, *found))
            told = f"{item_id} got the body of {found}"
            findings.record("requests arrive byte for byte, each for its item", *([told] if wrong else []))


def check_results(evidence: FinalState, findings: Findings, *, payloads: Path) -> None:
    """The stored answer of each completed item is the one that its event counts, byte for byte."""
    name = "the result of a completed item is what the upstream sent for it"
    owners = {one.answer: one.item for one in evidence.answers if one.is_usable}
    for item in evidence.items:
        batch = evidence.batches.get(item.batch_id)
        if item.state != "completed" or batch is None or batch.deleted:
            continue
        stored = _stored(item, payloads)
        findings.record(name, *_result(evidence, item, stored))
        findings.record(FOREIGN, *_foreign(owners, item, stored))


def _attempts(item: FinalItem, allowed: int) -> Iterator[str]:
    if item.attempt - item.excused > allowed:
        yield f"{_where(item)}: {item.attempt} of {allowed}, {item.excused} excused"


def _excused(item: FinalItem, events: list[Event]) -> Iterator[str]:
    """A refusal that ended the item was not; whether a cancelled attempt would have been, its event no longer says."""
    refusals = sorted((event for event in events if event.is_refusal), key=lambda event: event.attempt)
    if item.error_code == "upstream_status" and refusals and refusals[-1].attempt == item.attempt:
        refusals.pop()
    cancelled = sum(event.error_kind == "cancelled" and event.status in (401, 403) for event in events)
    if not len(refusals) <= item.excused <= len(refusals) + cancelled:
        yield f"{_where(item)}: {item.excused} excused: {_story(events, [])}"
    if sum(event.status == 403 for event in refusals) > MAX_EXCUSED_403S:
        yield f"{_where(item)}: too often: {_story(events, [])}"


def _refused(item: FinalItem, events: list[Event]) -> Iterator[str]:
    for event in events:
        if event.is_refusal and event.cost_nanos != 0:
            yield f"{_where(item)}: {event}"


def _one_event_each(item: FinalItem, events: list[Event]) -> Iterator[str]:
    numbers = sorted(event.attempt for event in events if not event.late)
    if numbers != list(range(1, item.attempt + 1)):
        yield f"{_where(item)}: {item.attempt} attempts, events of {numbers}"


def _sends(item: FinalItem, events: list[Event], served: list[Served]) -> Iterator[str]:
    """A lost worker's event cannot say how much was sent: as much as an attempt may."""
    explained = sum(
        MAX_SENDS_PER_ATTEMPT if event.error_kind == "worker_lost" else event.keys_tried
        for event in events
        if not event.late
    )
    if len(served) > explained or any(event.keys_tried > MAX_SENDS_PER_ATTEMPT for event in events):
        yield f"{_where(item)}: {len(served)} sends, events explain {explained}: {_story(events, served)}"


def _keys(item: FinalItem, served: list[Served]) -> Iterator[str]:
    key, times = Counter(one.credential for one in served).most_common(1)[0] if served else ("", 0)
    if times > item.attempt:
        yield f"{_where(item)}: {times} sends with {key} in {item.attempt} attempts"


def _after_answers(item: FinalItem, served: list[Served]) -> Iterator[str]:
    ending = sum(one.is_whole and KINDS[one.kind].final for one in served)
    if ending > item.attempt:
        yield f"{_where(item)}: {ending} answers that end an attempt, {item.attempt} attempts"


def _late(item: FinalItem, events: list[Event]) -> Iterator[str]:
    lost = {event.attempt for event in events if event.error_kind == "worker_lost" and not event.late}
    for event in events:
        if event.late and event.attempt not in lost:
            yield f"{_where(item)}: late event of attempt {event.attempt}: {_story(events, [])}"


def _check_usage(evidence: FinalState, findings: Findings) -> None:
    items = {(item.batch_id, item.idx): item for item in evidence.items}
    counted: Counter[int] = Counter()
    for place, events in evidence.events.items():
        for event in events:
            number = event.answer_number
            if number is None:
                continue
            counted[number] += 1
            findings.record(
                "an event's tokens are what the upstream stated",
                *_usage(evidence, event, number=number, item=items.get(place)),
            )
    twice = [f"answer {number} is in {times} events" for number, times in counted.items() if times > 1]
    findings.record("no answer's tokens are counted twice", *twice, times=len(counted))


def _usage(evidence: FinalState, event: Event, *, number: int, item: FinalItem | None) -> Iterator[str]:
    answer = evidence.answers[number] if 0 <= number < len(evidence.answers) else None
    if answer is None or item is None or answer.item != str(item.id):
        yield f"{event} is of no answer that this item got"
    elif (event.input, event.output) != tokens_of(number) or event.cost_nanos != _cost(number):
        yield f"{event} is wrong of {answer.kind} answer {number}"


def _cost(number: int) -> int:
    tokens_in, tokens_out = tokens_of(number)
    return tokens_in * 2_000 + tokens_out * 8_000


def _stored(item: FinalItem, payloads: Path) -> bytes | None:
    folder = payloads / item.batch_id.hex / "responses" / str(item.idx // RESPONSES_PER_FOLDER)
    path = folder / f"{item.idx}-{item.claim_no}"
    return path.read_bytes() if path.exists() else None


def _foreign(owners: Mapping[bytes, str], item: FinalItem, stored: bytes | None) -> Iterator[str]:
    """Each usable answer has a number of its own, so that it tells whom it was for."""
    asked_by = owners.get(stored or b"")
    if asked_by not in (None, str(item.id)):
        yield f"{_where(item)}: the answer to item {asked_by}"


def _result(evidence: FinalState, item: FinalItem, stored: bytes | None) -> Iterator[str]:
    if stored is None:
        yield f"{_where(item)}: no answer of claim {item.claim_no}"
        return
    sent = [one for one in evidence.served_to(item) if one.is_usable and one.answer == stored]
    if not sent or len(stored) != item.response_length:
        yield f"{_where(item)}: {stored[:60]!r} was never sent for it"
        return
    last = max((e for e in evidence.events_of(item) if not e.late), key=lambda e: e.attempt, default=None)
    stated = sent[0].number if sent[0].kind != "no usage" else None
    if last is None or last.error_kind or last.answer_number != stated:
        yield f"{_where(item)}: stored answer {sent[0].number}, counted {last}"


def _is_for(item: FinalItem, tag: str, idx: int) -> bool:
    """In a retried batch the index is another; there, and wherever there is one, the custom_id tells."""
    return item.custom_id is None or item.custom_id == f"{tag}-{idx}"


def _where(item: FinalItem) -> str:
    return f"{item.batch_id}[{item.idx}] {item.state} {item.error_code}".strip()


def _story(events: list[Event], served: list[Served]) -> str:
    told = [
        {
            "attempt": e.attempt,
            "late": e.late,
            "error": e.error_kind,
            "status": e.status,
            "keys": e.keys_tried,
        }
        for e in sorted(events, key=lambda e: (e.attempt, e.late))
    ]
    return json.dumps([*told, *({"at": round(s.at, 2), "key": s.credential, "kind": s.kind} for s in served)])
