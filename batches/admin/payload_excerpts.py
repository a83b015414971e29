"""What the payload page shows of an item: the first 64 KiB of each payload, decoded for reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from batches.models import ItemState
from batches.payloads import PayloadReadError, PayloadStoreUnavailable, open_store
from batches.results.responses import read_response, read_response_start

if TYPE_CHECKING:
    from batches.models import BatchItem

MAX_EXCERPT_BYTES = 64 << 10
PARTS = ("request", "response")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """`part`: the payload's name in the download URL; empty where there is no download.

    `length`: of the whole payload, in bytes. `text` is None when the payload cannot be read.
    """

    title: str
    part: str
    length: int
    text: str | None = field(repr=False)

    @property
    def is_truncated(self) -> bool:
        return self.length > MAX_EXCERPT_BYTES

    @property
    def excerpt_bytes(self) -> int:
        return min(self.length, MAX_EXCERPT_BYTES)


def build_excerpts(item: BatchItem) -> list[Excerpt]:
    found = [_build_excerpt(item, "request", item.request_length)]
    if item.state == ItemState.COMPLETED:
        found.append(_build_excerpt(item, "response", item.response_length or 0))
    if item.upstream_error is not None:
        error = bytes(item.upstream_error)
        text = error.decode(errors="replace")
        found.append(Excerpt(title="Upstream error (its first 4 KiB)", part="", length=len(error), text=text))
    return found


def read_whole_part(item: BatchItem, part: str) -> bytes | None:
    """None when the item has no such payload. Raises PayloadReadError, PayloadStoreUnavailable."""
    if part == "request":
        return open_store().read_request(
            item.batch_id, offset=item.request_offset, length=item.request_length
        )
    return read_response(item) if item.state == ItemState.COMPLETED else None


def _build_excerpt(item: BatchItem, part: str, length: int) -> Excerpt:
    try:
        text = _read_start(item, part, min(length, MAX_EXCERPT_BYTES)).decode(errors="replace")
    except (PayloadReadError, PayloadStoreUnavailable):
        text = None
    return Excerpt(title=part.capitalize(), part=part, length=length, text=text)


def _read_start(item: BatchItem, part: str, length: int) -> bytes:
    if part == "request":
        return open_store().read_request(item.batch_id, offset=item.request_offset, length=length)
    return read_response_start(item, length=length)
