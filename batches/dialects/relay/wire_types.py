"""What Relay's routes answer: its documented fields in their order, then ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from batches.models import ITEM_STATES
from batches.models.batch import ProcessingStatus
from relaybatch.http.timestamps import Timestamp

RelayItemState: TypeAlias = Annotated[str, Meta(extra_json_schema={"enum": list(ITEM_STATES)})]
ItemCounts: TypeAlias = Annotated[
    Mapping[str, int], Meta(description="Items by state; only states that occur.")
]
WaitingCounts: TypeAlias = Annotated[
    Mapping[str, int], Meta(description="Waiting items by the reason of waiting.")
]


class RelayAccepted(Struct, frozen=True, kw_only=True):
    id: str
    status: Literal["queued"]
    total_items: int


class RelayCancelled(Struct, frozen=True, kw_only=True):
    """The same for every cancel by the owner, also of a batch that had ended and stays as it was."""

    status: Literal["cancelled"]


class RelayUsage(Struct, frozen=True, kw_only=True):
    """What was used so far; attempts without a price are counted in `unpriced` and not in `cost_nanos`."""

    tokens: Annotated[Mapping[str, int], Meta(description="Tokens by meter.")]
    cost_nanos: int
    currency: str
    unpriced: int


class RelayItem(Struct, frozen=True, kw_only=True):
    idx: int
    state: RelayItemState


class RelayBatch(Struct, frozen=True, kw_only=True):
    """A batch of bare bodies, Relay's. Lists, and `items=false`, leave `items` out."""

    ID: str
    RelayKeyHash: str
    PolicyID: str
    InboundShape: str
    Status: Literal["queued", "cancelled"]
    TotalItems: int
    CreatedAt: Timestamp
    CompletedAt: Timestamp | None
    ProjectID: str | None
    TeamID: str | None
    PrincipalKind: str
    PrincipalID: str
    CredentialKind: str
    CredentialID: str
    counts: ItemCounts
    items: list[RelayItem] | UnsetType = UNSET
    processing_status: ProcessingStatus
    expires_at: Timestamp | None
    waiting: WaitingCounts
    usage: RelayUsage
    metadata: dict[str, str]


class RelayBatchList(Struct, frozen=True, kw_only=True):
    """A page of batches, newest first."""

    batches: list[RelayBatch]
    next_cursor: str | None


class RelayResult(Struct, frozen=True, kw_only=True):
    """One item. `error_code`, `upstream_status`, `upstream_error` and `usage` are there when `include` names them."""

    idx: int
    state: RelayItemState
    response: Annotated[
        Raw | UnsetType, Meta(description="The upstream's JSON, token for token; of completed items only.")
    ] = UNSET
    error: Annotated[str, Meta(description="Why there is no answer.")] | UnsetType = UNSET
    error_code: str | UnsetType | None = UNSET
    upstream_status: int | UnsetType | None = UNSET
    upstream_error: str | UnsetType | None = UNSET
    usage: RelayUsage | UnsetType | None = UNSET


class RelayResults(Struct, frozen=True, kw_only=True):
    """Every item by `idx`, at any time: unfinished ones have no answer yet."""

    results: list[RelayResult]
