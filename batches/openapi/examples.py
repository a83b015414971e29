"""One example a dialect of what is sent and answered."""

from __future__ import annotations

from typing import Any

_CHAT_REQUEST = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello."}]}

RELAY_SUBMISSION = {"shape": "openai", "requests": [_CHAT_REQUEST], "metadata": {"job": "nightly"}}
CHAT_SUBMISSION = {"requests": [{"custom_id": "greeting-1", "params": _CHAT_REQUEST}]}
MESSAGES_SUBMISSION = {
    "requests": [
        {
            "custom_id": "greeting-1",
            "params": {
                "model": "claude-sonnet-4-5",
                "max_tokens": 100,
                "messages": [{"role": "user", "content": "Say hello."}],
            },
        }
    ]
}
RETRY_RATE_LIMITED = {"error_code": ["rate_limited", "timeout"]}

_RELAY_ID = "019a4f2e-6b1c-7c3e-9d5a-2f60b1a3c4d5"
_CANCELLED_AT = "2026-10-21T09:14:23.512Z"
_CREATED_AT, _EXPIRES_AT = "2026-10-21T09:14:03.512Z", "2026-10-22T09:14:03.512Z"
_NOTHING_USED = {"input": 0, "cache_read": 0, "cache_write": 0, "output": 0}

RELAY_ACCEPTED = {"id": _RELAY_ID, "status": "queued", "total_items": 1}
RELAY_BATCH: dict[str, Any] = {
    "ID": _RELAY_ID,
    "RelayKeyHash": "5d41402abc4b2a76b9719d911017c592ae1b34dd0f0a2c9e84d7f9c9b2c7f001",
    "PolicyID": "019a4f00-0000-7000-8000-000000000001",
    "InboundShape": "openai",
    "Status": "queued",
    "TotalItems": 1,
    "CreatedAt": _CREATED_AT,
    "CompletedAt": None,
    "ProjectID": "019a4f00-0000-7000-8000-000000000002",
    "TeamID": None,
    "PrincipalKind": "serviceaccount",
    "PrincipalID": "019a4f00-0000-7000-8000-000000000003",
    "CredentialKind": "key",
    "CredentialID": "019a4f00-0000-7000-8000-000000000004",
    "counts": {"running": 1},
    "items": [{"idx": 0, "state": "running"}],
    "processing_status": "in_progress",
    "expires_at": None,
    "waiting": {},
    "usage": {"tokens": _NOTHING_USED, "cost_nanos": 0, "currency": "USD", "unpriced": 0},
    "metadata": {"job": "nightly"},
}
RELAY_BATCH_WITHOUT_ITEMS = {name: value for name, value in RELAY_BATCH.items() if name != "items"}
RELAY_RESULTS = {
    "results": [
        {"idx": 0, "state": "completed", "response": {"choices": [{"message": {"content": "Hello."}}]}},
        {"idx": 1, "state": "discarded", "error": "the model is not known here"},
    ]
}
CHAT_BATCH: dict[str, Any] = {
    "id": "batch_019a4f2e6b1c7c3e9d5a2f60b1a3c4d5",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "model": None,
    "errors": None,
    "input_file_id": "",
    "completion_window": "24h",
    "status": "in_progress",
    "output_file_id": None,
    "error_file_id": None,
    "created_at": 1_792_574_043,
    "expires_at": 1_792_660_443,
    "in_progress_at": 1_792_574_043,
    "finalizing_at": None,
    "completed_at": None,
    "failed_at": None,
    "expired_at": None,
    "cancelling_at": None,
    "cancelled_at": None,
    "request_counts": {
        "total": 1,
        "completed": 0,
        "failed": 0,
        "processing": 1,
        **dict.fromkeys(("succeeded", "errored", "canceled", "expired"), 0),
    },
    "metadata": {},
    "usage": None,
    "processing_status": "in_progress",
    "results_url": None,
}
CANCELLED_CHAT_BATCH = CHAT_BATCH | {
    "status": "cancelling",
    "cancelling_at": 1_792_574_063,
    "processing_status": "canceling",
}
_FILE_ID = "file-019a4f2e6b1c7c3e9d5a2f60b1a3c4d6"
FILE_SUBMISSION = {
    "input_file_id": _FILE_ID,
    "endpoint": "/v1/chat/completions",
    "completion_window": "24h",
    "metadata": {"job": "nightly"},
}
FILE_BATCH = {
    name: value for name, value in CHAT_BATCH.items() if name not in ("processing_status", "results_url")
} | {
    "input_file_id": _FILE_ID,
    "status": "validating",
    "in_progress_at": None,
    "request_counts": {"total": 0, "completed": 0, "failed": 0},
    "metadata": {"job": "nightly"},
}
CANCELLED_FILE_BATCH = FILE_BATCH | {"status": "cancelling", "cancelling_at": 1_792_574_063}
MESSAGE_BATCH: dict[str, Any] = {
    "id": "msgbatch_019a4f2e6b1c7c3e9d5a2f60b1a3c4d5",
    "type": "message_batch",
    "processing_status": "in_progress",
    "request_counts": {"processing": 1, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
    "created_at": _CREATED_AT,
    "expires_at": _EXPIRES_AT,
    "ended_at": None,
    "cancel_initiated_at": None,
    "archived_at": None,
    "results_url": None,
}
CANCELLED_MESSAGE_BATCH = MESSAGE_BATCH | {
    "processing_status": "canceling",
    "cancel_initiated_at": _CANCELLED_AT,
}
FILE: dict[str, Any] = {
    "id": "file-019a4f2e6b1c7c3e9d5a2f60b1a3c4d5",
    "object": "file",
    "bytes": 20_480,
    "created_at": 1_792_574_043,
    "expires_at": None,
    "filename": "requests.jsonl",
    "purpose": "batch",
    "status": "processed",
    "status_details": None,
}
RESULT_LINES = (
    '{"custom_id":"greeting-1","result":{"type":"succeeded","message":{"content":"Hello."}}}\n'
    '{"custom_id":"greeting-2","result":{"type":"canceled"}}\n'
)
OUTPUT_LINES = (
    '{"id":"batch_req_019a4f2e6b1c7c3e9d5a2f60b1a3c4d7","custom_id":"greeting-1","response":{"status_code":200,'
    '"request_id":"req_1","body":{"choices":[]}},"error":null}\n'
    '{"id":"batch_req_019a4f2e6b1c7c3e9d5a2f60b1a3c4d8","custom_id":"greeting-2","response":null,'
    '"error":{"code":"batch_cancelled","message":"The batch was cancelled."}}\n'
)
