"""One page of a batch's items. A page starts at an index instead of an offset, so every page costs the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from batches.models import ITEM_STATES, BatchItem

if TYPE_CHECKING:
    import uuid

    from django.http import QueryDict

ITEMS_PER_PAGE = 100
_MAX_INDEX = 2**31 - 2
# The columns that the list shows. Others are not read, above all not `upstream_error`.
_COLUMNS = (
    "id",
    "batch_id",
    "idx",
    "custom_id",
    "state",
    "attempt",
    "excused",
    "error_code",
    "error",
    "upstream_status",
    "finished_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    items: list[Any]
    state: str
    first_idx: int
    next_query: str
    """The query string of the next page; empty on the last one."""

    @property
    def states(self) -> list[str]:
        return list(ITEM_STATES)


def item_page(batch_id: uuid.UUID, query: QueryDict) -> ItemPage:
    """Parameters: `item_state` and `from_idx`. An invalid value is ignored."""
    state = query.get("item_state", "")
    state = state if state in ITEM_STATES else ""
    first_idx = _parse_index(query.get("from_idx", ""))
    rows = BatchItem.objects.page(batch_id, after_idx=first_idx - 1, states=[state] if state else [])
    found = list(rows.only(*_COLUMNS)[: ITEMS_PER_PAGE + 1])
    items = found[:ITEMS_PER_PAGE]
    following = {"item_state": state, "from_idx": items[-1].idx + 1} if len(found) > ITEMS_PER_PAGE else {}
    return ItemPage(items=items, state=state, first_idx=first_idx, next_query=urlencode(following))


def _parse_index(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):
        return 0
    return min(int(text), _MAX_INDEX)
