"""Invariants of each item at the end of a run: attempts, sends, usage and result, by rows, files and the upstream."""

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


def check_items(final_state: FinalState, findings: Findings, *, max_attempts: dict[uuid.UUID, int]) -> None:
    for item in final_state.items:
        events, served = final_state.events_of(item), final_state.served_to(item)
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
    _check_usage(final_state, findings)
    findings.record(
        "every request was for an item that exists",
        *([f"{final_state.unknown_items} items"] if final_state.unknown_items else []),
        times=len(final_state.served),
    )


def check_requests(final_state: FinalState, findings: Findings) -> None:
    """The body of each request is what was submitted for that item; for any item, if it is unknown which one."""
    hashes = {
        h: (submission.tag, idx)
        for submission in final_state.submissions
        for idx, h in enumerate(submission.hashes)
    }
    items = {item.id: item for item in final_state.items}
    for item_id, requests in final_state.served.items():
        item = items.get(item_id)
        for one in requests:
            found = hashes.get(one.body_hash)
            wrong = found is None or (item is not None and not _is_for(item, *found))
            message = f"{item_id} got the body of {found}"
            findings.record("requests arrive byte for byte, each for its item", *([message] if wrong else []))


def check_results(final_state: FinalState, findings: Findings, *, payloads: Path) -> None:
    """The stored response of each completed item is the one that its usage event counts, byte for byte."""
    name = "the result of a completed item is what the upstream sent for it"
    owners = {one.answer: one.item for one in final_state.answers if one.is_usable}
    for item in final_state.items:
        batch = final_state.batches.get(item.batch_id)
        if item.state != "completed" or batch is None or batch.deleted:
            continue
        stored = final_state.responses.get(item.id) or _stored(item, payloads)
        findings.record(name, *_result(final_state, item, stored))
        findings.record(FOREIGN, *_foreign(owners, item, stored))


def _attempts(item: FinalItem, allowed: int) -> Iterator[str]:
    if item.attempt - item.excused > allowed:
        yield f"{_where(item)}: {item.attempt} of {allowed}, {item.excused} excused"


def _excused(item: FinalItem, events: list[Event]) -> Iterator[str]:
    """A rejection that ended the item is not excused. For a cancelled attempt the event does not say."""
    refusals = sorted((event for event in events if event.is_refusal), key=lambda event: event.attempt)
    if item.error_code == "upstream_status" and refusals and refusals[-1].attempt == item.attempt:
        refusals.pop()
    cancelled = sum(event.error_kind == "cancelled" and event.status in (401, 403) for event in events)
    if not len(refusals) <= item.excused <= len(refusals) + cancelled:
        yield f"{_where(item)}: {item.excused} excused: {_history(events, [])}"
    if sum(event.status == 403 for event in refusals) > MAX_EXCUSED_403S:
        yield f"{_where(item)}: too often: {_history(events, [])}"


def _refused(item: FinalItem, events: list[Event]) -> Iterator[str]:
    for event in events:
        if event.is_refusal and event.cost_nanos != 0:
            yield f"{_where(item)}: {event}"


def _one_event_each(item: FinalItem, events: list[Event]) -> Iterator[str]:
    numbers = sorted(event.attempt for event in events if not event.late)
    if numbers != list(range(1, item.attempt + 1)):
        yield f"{_where(item)}: {item.attempt} attempts, events of {numbers}"


def _sends(item: FinalItem, events: list[Event], served: list[Served]) -> Iterator[str]:
    """A lost worker's event does not know how much was sent, so the maximum of an attempt is allowed."""
    explained = sum(
        MAX_SENDS_PER_ATTEMPT if event.error_kind == "worker_lost" else event.keys_tried
        for event in events
        if not event.late
    )
    if len(served) > explained or any(event.keys_tried > MAX_SENDS_PER_ATTEMPT for event in events):
        yield f"{_where(item)}: {len(served)} sends, events explain {explained}: {_history(events, served)}"


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
            yield f"{_where(item)}: late event of attempt {event.attempt}: {_history(events, [])}"


def _check_usage(final_state: FinalState, findings: Findings) -> None:
    items = {(item.batch_id, item.idx): item for item in final_state.items}
    counted: Counter[int] = Counter()
    for key, events in final_state.events.items():
        for event in events:
            number = event.answer_number
            if number is None:
                continue
            counted[number] += 1
            findings.record(
                "an event's tokens are what the upstream stated",
                *_usage(final_state, event, number=number, item=items.get(key)),
            )
    twice = [f"answer {number} is in {times} events" for number, times in counted.items() if times > 1]
    findings.record("no answer's tokens are counted twice", *twice, times=len(counted))


def _usage(final_state: FinalState, event: Event, *, number: int, item: FinalItem | None) -> Iterator[str]:
    answer = final_state.answers[number] if 0 <= number < len(final_state.answers) else None
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
    """Each usable response has a number of its own, which identifies the item that it was for."""
    asked_by = owners.get(stored or b"")
    if asked_by not in (None, str(item.id)):
        yield f"{_where(item)}: the answer to item {asked_by}"


def _result(final_state: FinalState, item: FinalItem, stored: bytes | None) -> Iterator[str]:
    if stored is None:
        yield f"{_where(item)}: no answer of claim {item.claim_no}"
        return
    sent = [one for one in final_state.served_to(item) if one.is_usable and one.answer == stored]
    if not sent or len(stored) != item.response_length:
        yield f"{_where(item)}: {stored[:60]!r} was never sent for it"
        return
    last = max((e for e in final_state.events_of(item) if not e.late), key=lambda e: e.attempt, default=None)
    stated = sent[0].number if sent[0].kind != "no usage" else None
    if last is None or last.error_kind or last.answer_number != stated:
        yield f"{_where(item)}: stored answer {sent[0].number}, counted {last}"


def _is_for(item: FinalItem, tag: str, idx: int) -> bool:
    """By the custom_id if there is one: in a batch of resubmitted items the index differs."""
    return item.custom_id is None or item.custom_id == f"{tag}-{idx}"


def _where(item: FinalItem) -> str:
    return f"{item.batch_id}[{item.idx}] {item.state} {item.error_code}".strip()


def _history(events: list[Event], served: list[Served]) -> str:
    lines = [
        {
            "attempt": e.attempt,
            "late": e.late,
            "error": e.error_kind,
            "status": e.status,
            "keys": e.keys_tried,
        }
        for e in sorted(events, key=lambda e: (e.attempt, e.late))
    ]
    return json.dumps(
        [*lines, *({"at": round(s.at, 2), "key": s.credential, "kind": s.kind} for s in served)]
    )
