"""Relay's dialect: bodies of `shape` and `requests`, and batches that are named by their bare UUID."""

from __future__ import annotations

import base64
import binascii
import uuid
from typing import TYPE_CHECKING

from django.conf import settings

from batches.dialects.dialect_response import DialectResponse, json_response
from batches.dialects.paging import DEFAULT_LIMIT, older_page
from batches.dialects.relay.results import ResultsQuery, render_relay_results
from batches.dialects.relay.status import relay_batch, render_relay_created, render_relay_status
from batches.dialects.relay.submission import parse_relay_submission
from batches.dialects.relay.wire_types import RelayBatchList, RelayCancelled
from batches.models.dialect_traits import DialectTraits
from batches.results.status import batch_statuses
from relaybatch.http.query_params import invalid_param

if TYPE_CHECKING:
    from batches.dialects.body_parser import SubmissionBody
    from batches.dialects.request_context import RequestContext
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.submission.submission import Submission

MAX_LIST_LIMIT = 100


class Relay:
    name = "relay"
    traits = DialectTraits(id_prefix="", has_metadata=True)

    def max_body_bytes(self) -> int:
        return settings.RELAY_MAX_REQUEST_BYTES

    def parse_submission(self, body: SubmissionBody, context: RequestContext) -> Submission:
        return parse_relay_submission(body, headers=context.headers)

    def render_created(self, batch: Batch) -> tuple[int, bytes]:
        return render_relay_created(batch)

    def render_status(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return render_relay_status(batch, context.parameters)

    def render_results(self, batch: Batch, context: RequestContext) -> DialectResponse:
        return render_relay_results(batch.id, ResultsQuery.from_parameters(context.parameters))

    def render_cancelled(self, batch: Batch, context: RequestContext, *, changed: bool) -> DialectResponse:  # noqa: ARG002
        """The same for every batch of the owner, also for one that had ended and stays as it was."""
        return json_response(RelayCancelled(status="cancelled"))

    def render_deleted(self, batch: Batch) -> DialectResponse:  # noqa: ARG002
        return DialectResponse(b"", status=204)

    def render_list(self, owned: BatchQuerySet, context: RequestContext) -> DialectResponse:
        limit = context.parameters.number("limit", default=DEFAULT_LIMIT, minimum=1, maximum=MAX_LIST_LIMIT)
        cursor = context.parameters.text("cursor")
        page = older_page(owned, limit=limit, than=_decode_cursor(cursor) if cursor else None)
        return json_response(
            RelayBatchList(
                batches=[relay_batch(status) for status in batch_statuses(page.batches)],
                next_cursor=_encode_cursor(page.batches[-1].id) if page.has_more else None,
            )
        )


def _encode_cursor(batch_id: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(batch_id.bytes).decode("ascii").rstrip("=")


def _decode_cursor(text: str) -> uuid.UUID:
    try:
        raw = base64.b64decode(f"{text}==".encode("ascii"), altchars=b"-_", validate=True)
        return uuid.UUID(bytes=raw)
    except (ValueError, binascii.Error):
        raise invalid_param("cursor", "a next_cursor of this list") from None
