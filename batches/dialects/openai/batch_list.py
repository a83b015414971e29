"""The list of `/v1/batches`: batches of files and of Chat Completions in one order, each in its own form.

https://platform.openai.com/docs/api-reference/batch/list
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from batches.dialects.dialect_response import DialectResponse, json_response
from batches.dialects.openai.batch import FileBatch, file_batches
from batches.dialects.openai.chat_batch import ChatBatch, chat_batches
from batches.dialects.paging import DEFAULT_LIMIT, requested_page
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from relaybatch.http.query_params import QueryParams

MAX_LIST_LIMIT = 100


# msgspec describes no union of types without a tag; both are described with the routes that answer them alone.
_EITHER = {"anyOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in (ChatBatch, FileBatch)]}
ListedBatch: TypeAlias = Annotated[Any, Meta(extra_json_schema=_EITHER)]


class BatchList(Struct, frozen=True, kw_only=True):
    """A page of batches, newest first."""

    object: Literal["list"]
    data: list[ListedBatch]
    first_id: str | None
    last_id: str | None
    has_more: bool


def render_batch_list(owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
    """Render a page of batches of both dialects, or of those that `owned` has."""
    parameters = context.parameters
    limit = parameters.number("limit", default=DEFAULT_LIMIT, minimum=1, maximum=MAX_LIST_LIMIT)
    after = _after_parameter(parameters)
    page = requested_page(owned, parameters, limit=limit, after=after, before="before_id")
    return json_response(
        BatchList(
            object="list",
            data=_render_batches(page.batches, context),
            first_id=page.first_id,
            last_id=page.last_id,
            has_more=page.has_more,
        )
    )


def _render_batches(batches: Sequence[Batch], context: RequestContext) -> list[FileBatch | ChatBatch]:
    """Few queries, whatever the number of batches."""
    of_files = [batch for batch in batches if batch.input_file_id]
    of_chat = [batch for batch in batches if not batch.input_file_id]
    rendered: dict[object, FileBatch | ChatBatch] = {}
    rendered.update(zip((batch.id for batch in of_files), file_batches(of_files), strict=True))
    if of_chat:
        in_form = chat_batches(of_chat, origin=context.origin())
        rendered.update(zip((batch.id for batch in of_chat), in_form, strict=True))
    return [rendered[batch.id] for batch in batches]


def _after_parameter(parameters: QueryParams) -> str:
    """OpenAI's name of the cursor, or that of Message Batches."""
    given = [name for name in ("after", "after_id") if parameters.text(name) is not None]
    if len(given) == 2:
        raise InvalidRequest(
            "`after` and `after_id` are one and the same: send one.",
            code="conflicting_fields",
            param="after_id",
        )
    return given[0] if given else "after"
