"""Relay's dialect: `shape` and `requests` in, the batch by its bare UUID out."""

from __future__ import annotations

import base64
import binascii
import uuid
from typing import TYPE_CHECKING

from django.conf import settings

from batches.dialects.paging import LIMIT_DEFAULT, older
from batches.dialects.relay.results import ResultsQuery, relay_results
from batches.dialects.relay.status import relay_created, relay_listed, relay_status
from batches.dialects.relay.submission import relay_submission
from batches.dialects.response import Answer, json_answer
from batches.results.status import batch_statuses
from relaybatch.http.query_params import bad_value

if TYPE_CHECKING:
    from batches.dialects.body_parser import Wire
    from batches.dialects.request_context import Asked
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.submission.submission import Submission

LIST_MOST = 100


class Relay:
    name = "relay"

    def max_body_bytes(self) -> int:
        return settings.RELAY_MAX_REQUEST_BYTES

    def submission(self, wire: Wire, asked: Asked) -> Submission:
        return relay_submission(wire, headers=asked.headers)

    def created(self, batch: Batch) -> tuple[int, bytes]:
        return relay_created(batch)

    def shown(self, batch: Batch, asked: Asked) -> Answer:
        return relay_status(batch, asked.parameters)

    def results(self, batch: Batch, asked: Asked) -> Answer:
        return relay_results(batch.id, ResultsQuery.read(asked.parameters))

    def cancelled(self, batch: Batch, asked: Asked) -> Answer:  # noqa: ARG002
        """Always the same for the owner, also when the batch had ended and stays as it was."""
        return json_answer({"status": "cancelled"})

    def deleted(self, batch: Batch) -> Answer:  # noqa: ARG002
        return Answer(b"", status=204)

    def listed(self, owned: BatchQuerySet, asked: Asked) -> Answer:
        limit = asked.parameters.number("limit", default=LIMIT_DEFAULT, minimum=1, maximum=LIST_MOST)
        cursor = asked.parameters.text("cursor")
        page = older(owned, limit=limit, than=_from_cursor(cursor) if cursor else None)
        shown = [relay_listed(snapshot) for snapshot in batch_statuses(page.batches)]
        return json_answer(
            {"batches": shown, "next_cursor": _cursor(page.batches[-1].id) if page.has_more else None}
        )


def _cursor(batch_id: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(batch_id.bytes).decode("ascii").rstrip("=")


def _from_cursor(text: str) -> uuid.UUID:
    try:
        raw = base64.b64decode(f"{text}==".encode("ascii"), altchars=b"-_", validate=True)
        return uuid.UUID(bytes=raw)
    except (ValueError, binascii.Error):
        raise bad_value("cursor", "a next_cursor of this list") from None
