"""Message Batches, as Anthropic's SDKs and what is built on them speak: `/v1/messages/batches`.

https://docs.claude.com/en/api/creating-message-batches
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.conf import settings
from msgspec import json

from batches.dialects.custom_id import CustomIds, custom_id_submission
from batches.dialects.forwarded_headers import upstream_headers
from batches.dialects.paging import LIMIT_DEFAULT, asked_page
from batches.dialects.response import Answer, json_answer
from batches.dialects.results.result_lines import result_lines
from batches.models import ItemState
from batches.models.public_ids import public_id
from relaybatch.http.errors import InvalidRequest, TooLarge
from usage.serializers import shown_time, shown_time_if_any

if TYPE_CHECKING:
    from batches.dialects.body_parser import Wire
    from batches.dialects.request_context import Asked
    from batches.models import Batch
    from batches.models.batch import BatchQuerySet
    from batches.submission.submission import Submission

LIST_MOST = 1000
CUSTOM_IDS = CustomIds(
    pattern=re.compile(r"[A-Za-z0-9_-]{1,64}"), most_characters=64, form="1 to 64 of A-Z, a-z, 0-9, _ and -"
)
COUNTS = {
    "succeeded": ItemState.COMPLETED,
    "errored": ItemState.DISCARDED,
    "canceled": ItemState.CANCELLED,
    "expired": ItemState.EXPIRED,
}


class Messages:
    name = "messages"

    def max_body_bytes(self) -> int:
        return settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES

    def submission(self, wire: Wire, asked: Asked) -> Submission:
        """The host is looked at now, so that no poll is the first to find that it is not one of ours."""
        asked.origin()
        for foreign in ("shape", "input_file_id"):
            if wire.has(foreign):
                raise InvalidRequest(
                    f"`{foreign}` belongs to /v1/batches; here `requests` holds `custom_id` and `params`.",
                    code="conflicting_fields",
                    param=foreign,
                )
        return custom_id_submission(
            wire,
            dialect=self.name,
            shape="anthropic",
            custom_ids=CUSTOM_IDS,
            too_large=TooLarge,
            upstream_headers=upstream_headers(asked.headers),
        )

    def created(self, batch: Batch) -> tuple[int, bytes]:
        return 200, json.encode(_message_batch(batch, results_url=None))

    def shown(self, batch: Batch, asked: Asked) -> Answer:
        return json_answer(_shown(batch, asked))

    def results(self, batch: Batch, asked: Asked) -> Answer:
        return result_lines(batch, asked)

    def cancelled(self, batch: Batch, asked: Asked) -> Answer:
        return json_answer(_shown(batch, asked))

    def deleted(self, batch: Batch) -> Answer:
        return json_answer({"id": public_id(self.name, batch.id), "type": "message_batch_deleted"})

    def listed(self, owned: BatchQuerySet, asked: Asked) -> Answer:
        limit = asked.parameters.number("limit", default=LIMIT_DEFAULT, minimum=1, maximum=LIST_MOST)
        page = asked_page(owned, asked.parameters, limit=limit, after="after_id", before="before_id")
        data = [_shown(batch, asked) for batch in page.batches]
        return json_answer({"data": data, "has_more": page.has_more, **page.ends})


def _shown(batch: Batch, asked: Asked) -> dict[str, Any]:
    link = f"{asked.origin()}/v1/messages/batches/{public_id('messages', batch.id)}/results"
    return _message_batch(batch, results_url=link if batch.ended_at else None)


def _message_batch(batch: Batch, *, results_url: str | None) -> dict[str, Any]:
    """All ten keys, always."""
    return {
        "id": public_id("messages", batch.id),
        "type": "message_batch",
        "processing_status": batch.processing_status,
        "request_counts": _request_counts(batch),
        "created_at": shown_time(batch.created_at),
        "expires_at": shown_time_if_any(batch.expires_at),
        "ended_at": shown_time_if_any(batch.ended_at),
        "cancel_initiated_at": shown_time_if_any(batch.cancel_initiated_at),
        "archived_at": None,
        "results_url": results_url,
    }


def _request_counts(batch: Batch) -> dict[str, int]:
    """As Anthropic documents it, everything is in `processing` until the whole batch has ended."""
    final = batch.final_counts
    if final is None:
        return {"processing": batch.total_items, **dict.fromkeys(COUNTS, 0)}
    return {"processing": 0, **{name: final.get(state, 0) for name, state in COUNTS.items()}}
