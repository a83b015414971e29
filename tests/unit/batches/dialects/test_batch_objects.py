"""How a batch looks in each collection with `custom_id`, through its life."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import anthropic.types.messages as anthropic_types
import openai.types as openai_types
import pytest
from msgspec import to_builtins

from batches.dialects import CHAT, MESSAGES
from batches.dialects.openai import chat_batch as chat_batches
from batches.models import Batch
from tests.support.calls.request_contexts import ORIGIN, request_context
from usage.totals import Total

AT = datetime(2026, 10, 21, 9, 14, 3, 512_999, tzinfo=UTC)
LATER = AT + timedelta(seconds=90)
EPOCH = 1_792_574_043
ID = uuid.UUID("0192d1e5-7a3b-7c4d-8e5f-0123456789ab")


def batch(**fields: Any) -> Batch:
    return Batch(
        id=ID, created_at=AT, expires_at=AT + timedelta(days=1), total_items=10, metadata={}, **fields
    )


def ended(**counts: int) -> dict[str, Any]:
    return {"ended_at": LATER, "final_counts": counts}


def message_batch(**fields: Any) -> dict[str, Any]:
    answer = MESSAGES.render_status(batch(**fields), request_context())
    assert isinstance(answer.body, bytes)
    value: dict[str, Any] = json.loads(answer.body)
    anthropic_types.MessageBatch.model_validate(value, strict=False)
    return value


def chat_batch(
    *, counts: dict[str, int] | None = None, tokens: dict[str, int] | None = None, **fields: Any
) -> dict[str, Any]:
    one = batch(**fields)
    total = Total(currency="USD", tokens=tokens or {}) if one.ended_at else None
    found = chat_batches.chat_batch(one, counts=one.final_counts or counts or {}, total=total, origin=ORIGIN)
    value: dict[str, Any] = to_builtins(found)
    openai_types.Batch.model_validate(value, strict=True)
    return value


def test_a_message_batch_has_ten_keys_from_the_first_answer_on() -> None:
    status, body = MESSAGES.render_created(batch())
    assert status == 200
    assert json.loads(body) == {
        "id": "msgbatch_0192d1e57a3b7c4d8e5f0123456789ab",
        "type": "message_batch",
        "processing_status": "in_progress",
        "request_counts": {"processing": 10, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
        "created_at": "2026-10-21T09:14:03.512Z",
        "expires_at": "2026-10-22T09:14:03.512Z",
        "ended_at": None,
        "cancel_initiated_at": None,
        "archived_at": None,
        "results_url": None,
    }
    assert message_batch() == json.loads(body)


def test_a_message_batch_is_canceling_until_its_end() -> None:
    found = message_batch(cancel_initiated_at=LATER)
    assert found["processing_status"] == "canceling"
    assert found["cancel_initiated_at"] == "2026-10-21T09:15:33.512Z"
    assert found["request_counts"]["processing"] == 10
    assert found["results_url"] is None


def test_an_ended_message_batch_has_its_counts_and_a_link() -> None:
    found = message_batch(**ended(completed=4, discarded=3, cancelled=2, expired=1))
    assert found["processing_status"] == "ended"
    assert found["request_counts"] == {
        "processing": 0,
        "succeeded": 4,
        "errored": 3,
        "canceled": 2,
        "expired": 1,
    }
    assert found["ended_at"] == "2026-10-21T09:15:33.512Z"
    assert found["results_url"] == f"https://batches.test/v1/messages/batches/{found['id']}/results"


def test_a_chat_batch_has_all_keys_of_openais_and_ours_from_the_first_answer_on() -> None:
    status, body = CHAT.render_created(batch())
    assert status == 200
    found = json.loads(body)
    assert set(found) >= set(openai_types.Batch.model_fields)
    assert found == {
        "id": "batch_0192d1e57a3b7c4d8e5f0123456789ab",
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "model": None,
        "errors": None,
        "input_file_id": "",
        "completion_window": "24h",
        "status": "in_progress",
        "output_file_id": None,
        "error_file_id": None,
        "created_at": EPOCH,
        "expires_at": EPOCH + 86_400,
        "in_progress_at": EPOCH,
        "finalizing_at": None,
        "completed_at": None,
        "failed_at": None,
        "expired_at": None,
        "cancelling_at": None,
        "cancelled_at": None,
        "request_counts": {
            "total": 10,
            "completed": 0,
            "failed": 0,
            "processing": 10,
            "succeeded": 0,
            "errored": 0,
            "canceled": 0,
            "expired": 0,
        },
        "metadata": {},
        "usage": None,
        "processing_status": "in_progress",
        "results_url": None,
    }
    assert chat_batch(counts={"available": 10}) == found


def test_a_chat_batchs_counts_are_live() -> None:
    found = chat_batch(counts={"available": 3, "running": 2, "completed": 4, "discarded": 1})
    assert found["request_counts"] == {
        "total": 10,
        "completed": 4,
        "failed": 1,
        "processing": 5,
        "succeeded": 4,
        "errored": 1,
        "canceled": 0,
        "expired": 0,
    }
    assert (found["usage"], found["results_url"]) == (None, None)


@pytest.mark.parametrize(
    ("counts", "status", "times"),
    [
        ({"completed": 10}, "completed", {"finalizing_at", "completed_at"}),
        ({"discarded": 10}, "completed", {"finalizing_at", "completed_at"}),
        ({"completed": 9, "expired": 1}, "expired", {"finalizing_at", "expired_at"}),
        ({"completed": 9, "cancelled": 1}, "cancelled", {"cancelled_at"}),
    ],
)
def test_a_chat_batch_ends_as_what_happened(counts: dict[str, int], status: str, times: set[str]) -> None:
    cancel: dict[str, Any] = {"cancel_initiated_at": AT} if "cancelled" in counts else {}
    found = chat_batch(**ended(**counts), **cancel)
    assert (found["status"], found["processing_status"]) == (status, "ended")
    at_the_end = {"finalizing_at", "completed_at", "expired_at", "cancelled_at", "failed_at"}
    assert {name: found[name] for name in at_the_end} == {
        name: EPOCH + 90 if name in times else None for name in at_the_end
    }
    assert found["results_url"] == f"https://batches.test/v1/batches/{found['id']}/results"


def test_a_cancel_shows_as_cancelling_and_then_as_cancelled_also_where_every_answer_came_first() -> None:
    running = chat_batch(cancel_initiated_at=LATER, counts={"running": 10})
    assert (running["status"], running["processing_status"]) == ("cancelling", "canceling")
    assert running["cancelling_at"] == EPOCH + 90
    answered_first = chat_batch(cancel_initiated_at=LATER, **ended(completed=10))
    assert (answered_first["status"], answered_first["cancelled_at"]) == ("cancelled", EPOCH + 90)


def test_a_chat_batchs_usage_is_openais_sum() -> None:
    tokens = {"input": 100, "cache_read": 40, "cache_write": 5, "output": 50, "reasoning": 20}
    assert chat_batch(tokens=tokens, **ended(completed=10))["usage"] == {
        "input_tokens": 145,
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 195,
    }


def test_deleting_is_answered_in_each_collections_words() -> None:
    assert json.loads(b"".join([MESSAGES.render_deleted(batch()).body])) == {  # type: ignore[list-item]
        "id": "msgbatch_0192d1e57a3b7c4d8e5f0123456789ab",
        "type": "message_batch_deleted",
    }
    assert json.loads(b"".join([CHAT.render_deleted(batch()).body])) == {  # type: ignore[list-item]
        "id": "batch_0192d1e57a3b7c4d8e5f0123456789ab",
        "object": "batch",
        "deleted": True,
    }
