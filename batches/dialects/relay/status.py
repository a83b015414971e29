"""Relay's view of a batch: its documented fields in their order, then ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import json

from batches.dialects.relay.results import shown_usage
from batches.dialects.response import Answer
from batches.models import BatchItem, ItemState
from batches.models.public_ids import public_id
from batches.results.status import batch_statuses
from usage.serializers import shown_time, shown_time_if_any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batches.models import Batch
    from batches.results.status import BatchStatus
    from relaybatch.http.query_params import Parameters

ITEMS_A_PART = 10_000
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def relay_created(batch: Batch) -> tuple[int, bytes]:
    shown = {"id": public_id("relay", batch.id), "status": "queued", "total_items": batch.total_items}
    return 202, json.encode(shown)


def relay_status(batch: Batch, parameters: Parameters) -> Answer:
    """The items of a large batch are a stream: two megabytes for 50,000 of them, made of a letter each.

    All is read when this returns.
    """
    states = parameters.choices("state", among=ItemState.values)
    with_items = _FLAGS[parameters.choice("items", default="true", among=_FLAGS)]
    snapshot = batch_statuses([batch])[0]
    head, tail = _documented(snapshot), _ours(snapshot)
    if not with_items:
        return Answer(json.encode(head | tail))
    letters = BatchItem.objects.state_letters(batch.id)
    parts = _with_items(head, _items(letters, states), tail)
    return Answer(parts if batch.total_items > ITEMS_A_PART else b"".join(parts))


def relay_listed(snapshot: BatchStatus) -> dict[str, Any]:
    return _documented(snapshot) | _ours(snapshot)


def _documented(snapshot: BatchStatus) -> dict[str, Any]:
    batch = snapshot.batch
    return {
        "ID": public_id("relay", batch.id),
        "RelayKeyHash": batch.owner.name,
        "PolicyID": str(batch.policy_id),
        "InboundShape": batch.shape,
        "Status": "cancelled" if batch.cancel_initiated_at else "queued",
        "TotalItems": batch.total_items,
        "CreatedAt": shown_time(batch.created_at),
        "CompletedAt": shown_time_if_any(batch.ended_at),
        "ProjectID": str(batch.project_id) if batch.project_id else None,
        "TeamID": str(batch.team_id) if batch.team_id else None,
        "PrincipalKind": batch.principal_kind,
        "PrincipalID": batch.principal_id,
        "CredentialKind": batch.credential_kind,
        "CredentialID": batch.credential_id,
        "counts": {state: snapshot.counts[state] for state in ItemState.values if snapshot.counts.get(state)},
    }


def _ours(snapshot: BatchStatus) -> dict[str, Any]:
    batch = snapshot.batch
    return {
        "processing_status": batch.processing_status,
        "expires_at": shown_time_if_any(batch.expires_at),
        "waiting": snapshot.waiting,
        "usage": shown_usage(snapshot.usage),
        "metadata": batch.metadata,
    }


def _with_items(head: dict[str, Any], items: Iterator[bytes], tail: dict[str, Any]) -> Iterator[bytes]:
    opening = json.encode(head)[:-1] + b',"items":['
    for part in items:
        yield opening + part
        opening = b","
    yield (b"" if opening == b"," else opening) + b"]," + json.encode(tail)[1:]


def _items(letters: str, states: Sequence[str]) -> Iterator[bytes]:
    """`{"idx":0,"state":"completed"},…` for the items in these states (none given = all), a part at a time."""
    wanted = {state[1]: state for state in states or ItemState.values}
    for first in range(0, len(letters), ITEMS_A_PART):
        part = enumerate(letters[first : first + ITEMS_A_PART], first)
        shown = [f'{{"idx":{idx},"state":"{wanted[letter]}"}}' for idx, letter in part if letter in wanted]
        if shown:
            yield ",".join(shown).encode("ascii")
