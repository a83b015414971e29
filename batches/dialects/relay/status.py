"""Relay's view of a batch: its documented fields in their order, then ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import json

from batches.dialects.relay.results import usage_json
from batches.dialects.response import DialectResponse
from batches.models import ITEM_STATES, BatchItem
from batches.models.public_ids import public_id
from batches.results.status import batch_statuses
from usage.serializers import format_optional_time, format_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batches.models import Batch
    from batches.results.status import BatchStatus
    from relaybatch.http.query_params import QueryParams

ITEMS_PER_CHUNK = 10_000
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def render_relay_created(batch: Batch) -> tuple[int, bytes]:
    shown = {"id": public_id("relay", batch.id), "status": "queued", "total_items": batch.total_items}
    return 202, json.encode(shown)


def render_relay_status(batch: Batch, parameters: QueryParams) -> DialectResponse:
    """The items of a large batch are a stream: two megabytes for 50,000 of them, made of a letter each.

    All is read when this returns.
    """
    states = parameters.choices("state", among=ITEM_STATES)
    with_items = _FLAGS[parameters.choice("items", default="true", among=_FLAGS)]
    snapshot = batch_statuses([batch])[0]
    head, tail = _relay_fields(snapshot), _added_fields(snapshot)
    if not with_items:
        return DialectResponse(json.encode(head | tail))
    letters = BatchItem.objects.state_letters(batch.id)
    parts = _with_items(head, _render_items(letters, states), tail)
    return DialectResponse(parts if batch.total_items > ITEMS_PER_CHUNK else b"".join(parts))


def status_without_items(snapshot: BatchStatus) -> dict[str, Any]:
    return _relay_fields(snapshot) | _added_fields(snapshot)


def _relay_fields(snapshot: BatchStatus) -> dict[str, Any]:
    batch = snapshot.batch
    return {
        "ID": public_id("relay", batch.id),
        "RelayKeyHash": batch.owner.name,
        "PolicyID": str(batch.policy_id),
        "InboundShape": batch.shape,
        "Status": "cancelled" if batch.cancel_initiated_at else "queued",
        "TotalItems": batch.total_items,
        "CreatedAt": format_time(batch.created_at),
        "CompletedAt": format_optional_time(batch.ended_at),
        "ProjectID": str(batch.project_id) if batch.project_id else None,
        "TeamID": str(batch.team_id) if batch.team_id else None,
        "PrincipalKind": batch.principal_kind,
        "PrincipalID": batch.principal_id,
        "CredentialKind": batch.credential_kind,
        "CredentialID": batch.credential_id,
        "counts": {state: snapshot.counts[state] for state in ITEM_STATES if snapshot.counts.get(state)},
    }


def _added_fields(snapshot: BatchStatus) -> dict[str, Any]:
    batch = snapshot.batch
    return {
        "processing_status": batch.processing_status,
        "expires_at": format_optional_time(batch.expires_at),
        "waiting": snapshot.waiting,
        "usage": usage_json(snapshot.usage),
        "metadata": batch.metadata,
    }


def _with_items(head: dict[str, Any], items: Iterator[bytes], tail: dict[str, Any]) -> Iterator[bytes]:
    opening = json.encode(head)[:-1] + b',"items":['
    for part in items:
        yield opening + part
        opening = b","
    yield (b"" if opening == b"," else opening) + b"]," + json.encode(tail)[1:]


def _render_items(letters: str, states: Sequence[str]) -> Iterator[bytes]:
    """`{"idx":0,"state":"completed"},…` for the items in these states (none given = all), a part at a time."""
    state_by_letter = {state[1]: state for state in states or ITEM_STATES}
    for first in range(0, len(letters), ITEMS_PER_CHUNK):
        part = enumerate(letters[first : first + ITEMS_PER_CHUNK], first)
        rendered = [
            f'{{"idx":{idx},"state":"{state_by_letter[letter]}"}}'
            for idx, letter in part
            if letter in state_by_letter
        ]
        if rendered:
            yield ",".join(rendered).encode("ascii")
