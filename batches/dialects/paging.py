"""Pages of batches, each beginning after the batch of a given id, in both directions and always newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batches.models.public_ids import parse_batch_id, public_id
from relaybatch.http.errors import InvalidRequest
from relaybatch.http.query_params import invalid_param

if TYPE_CHECKING:
    import uuid

    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from relaybatch.http.query_params import QueryParams

DEFAULT_LIMIT = 20


@dataclass(frozen=True, slots=True)
class Page:
    """`has_more`: whether there are more in the direction that was asked for."""

    batches: list[Batch]
    has_more: bool

    @property
    def first_id(self) -> str | None:
        return _public_id(self.batches[0]) if self.batches else None

    @property
    def last_id(self) -> str | None:
        return _public_id(self.batches[-1]) if self.batches else None


def resolve_cursor(owned: BatchQuerySet, parameters: QueryParams, name: str) -> uuid.UUID | None:
    """The id of the batch that the parameter names; None without it. Raises InvalidRequest for an unknown batch.

    A deleted batch is still found, so that a client can page on after deleting.
    """
    text = parameters.text(name)
    if text is None:
        return None
    row_id = parse_batch_id(text)
    batch = owned.filter(id=row_id).first() if row_id else None
    if batch is None or _public_id(batch) != text:
        raise invalid_param(name, "the id of a batch in this list")
    return batch.id


def requested_page(
    owned: BatchQuerySet, parameters: QueryParams, *, limit: int, after: str, before: str
) -> Page:
    """The page after the batch that the parameter `after` names, or just before that of `before`, or the first page."""
    than, newer_than = resolve_cursor(owned, parameters, after), resolve_cursor(owned, parameters, before)
    if than and newer_than:
        raise InvalidRequest(
            f"`{after}` and `{before}` exclude each other.", code="conflicting_fields", param=before
        )
    return (
        newer_page(owned, limit=limit, than=newer_than)
        if newer_than
        else older_page(owned, limit=limit, than=than)
    )


def older_page(owned: BatchQuerySet, *, limit: int, than: uuid.UUID | None) -> Page:
    newest = owned.undeleted().newest_first()
    found = list((newest.older_than(than) if than else newest)[: limit + 1])
    return Page(found[:limit], has_more=len(found) > limit)


def newer_page(owned: BatchQuerySet, *, limit: int, than: uuid.UUID) -> Page:
    """The page of the batches just newer than that one."""
    found = list(owned.undeleted().newer_than(than).oldest_first()[: limit + 1])
    return Page(found[:limit][::-1], has_more=len(found) > limit)


def _public_id(batch: Batch) -> str:
    return public_id(batch.dialect, batch.id)
