"""Render the status of a batch in Relay's form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import json, structs

from batches.dialects.dialect_response import DialectResponse, json_response
from batches.dialects.relay.results import relay_usage
from batches.dialects.relay.wire_types import RelayAccepted, RelayBatch
from batches.models import ITEM_STATES, BatchItem
from batches.models.public_ids import public_id
from batches.results.status import batch_statuses
from relaybatch.http.timestamps import format_optional_time, format_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batches.models import Batch
    from batches.results.status import BatchStatus
    from relaybatch.http.query_params import QueryParams

ITEMS_PER_CHUNK = 10_000
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def render_relay_created(batch: Batch) -> tuple[int, bytes]:
    accepted = RelayAccepted(id=public_id("relay", batch.id), status="queued", total_items=batch.total_items)
    return 202, json.encode(accepted)


def render_relay_status(batch: Batch, parameters: QueryParams) -> DialectResponse:
    """Render the status, with its items unless `items=false`. The database has been read when this returns.

    The items of a large batch are streamed: 50,000 of them are two megabytes, made from one letter each.
    """
    states = parameters.choices("state", among=ITEM_STATES)
    with_items = _FLAGS[parameters.choice("items", default="true", among=_FLAGS)]
    status = relay_batch(batch_statuses([batch])[0])
    if not with_items:
        return json_response(status)
    letters = BatchItem.objects.state_letters(batch.id)
    parts = _with_items(status, _render_items(letters, states))
    return DialectResponse(parts if batch.total_items > ITEMS_PER_CHUNK else b"".join(parts))


def relay_batch(status: BatchStatus) -> RelayBatch:
    """The batch without its items."""
    batch = status.batch
    return RelayBatch(
        ID=public_id("relay", batch.id),
        RelayKeyHash=batch.owner.name,
        PolicyID=str(batch.policy_id),
        InboundShape=batch.shape,
        Status="cancelled" if batch.cancel_initiated_at else "queued",
        TotalItems=batch.total_items,
        CreatedAt=format_time(batch.created_at),
        CompletedAt=format_optional_time(batch.ended_at),
        ProjectID=str(batch.project_id) if batch.project_id else None,
        TeamID=str(batch.team_id) if batch.team_id else None,
        PrincipalKind=batch.principal_kind,
        PrincipalID=batch.principal_id,
        CredentialKind=batch.credential_kind,
        CredentialID=batch.credential_id,
        counts={state: status.counts[state] for state in ITEM_STATES if status.counts.get(state)},
        processing_status=batch.processing_status,
        expires_at=format_optional_time(batch.expires_at),
        waiting=status.waiting,
        usage=relay_usage(status.usage),
        metadata=batch.metadata,
    )


def _with_items(status: RelayBatch, items: Iterator[bytes]) -> Iterator[bytes]:
    empty = json.encode(structs.replace(status, items=[]))
    # Found where it belongs: no member before it has that name, and quotes within strings are escaped.
    head, name, tail = empty.partition(b'"items":[')
    opening = head + name
    for part in items:
        yield opening + part
        opening = b","
    yield tail if opening == b"," else opening + tail


def _render_items(letters: str, states: Sequence[str]) -> Iterator[bytes]:
    """Yield `{"idx":0,"state":"completed"},…` of the items in these states (none given = all), in chunks."""
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
