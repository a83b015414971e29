"""The two collections of `{custom_id, params}`: where they are, what they take, and batches of theirs for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from batches.models import Batch, BatchItem
from batches.payloads import open_store

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    path: str
    model: str

    def params(self, text: str = "hello", **fields: Any) -> dict[str, Any]:
        needed = {"max_tokens": 50} if self.name == "messages" else {}
        return {"model": self.model, **needed, "messages": [{"role": "user", "content": text}], **fields}

    def item(self, custom_id: Any = "a", params: bytes | None = None) -> bytes:
        body = json.dumps(self.params()).encode() if params is None else params
        return b'{"custom_id":' + json.dumps(custom_id).encode() + b',"params":' + body + b"}"

    def body(self, *items: bytes) -> bytes:
        return b'{"requests":[' + b",".join(items or (self.item(),)) + b"]}"

    def error(self, response: Any) -> dict[str, Any]:
        """The error, whose form is checked."""
        assert response["Content-Type"] == "application/json"
        whole = json.loads(response.content)
        if self.name == "messages":
            assert (whole["type"], whole["request_id"]) == ("error", response["request-id"])
            assert set(whole["error"]) == {"type", "message"}
        else:
            assert set(whole["error"]) == {"message", "type", "param", "code"}
        error: dict[str, Any] = whole["error"]
        return error

    def create(self, client: Client, rows: SimpleNamespace, *custom_ids: str) -> Batch:
        items = [self.item(custom_id) for custom_id in custom_ids or ("a",)]
        response = client.post(
            self.path, self.body(*items), content_type="application/json", headers=rows.headers
        )
        assert response.status_code == 200, response.content
        batch = Batch.objects.newest_first()[0]
        assert batch.dialect == self.name
        return batch


CHAT = Collection("chat", "/v1/batches", "echo-1")
MESSAGES = Collection("messages", "/v1/messages/batches", "echo-1-messages")
COLLECTIONS = (CHAT, MESSAGES)


def stored_requests(batch: Batch) -> list[bytes]:
    items = BatchItem.objects.of(batch).values_list("request_offset", "request_length")
    return [open_store().read_request(batch.id, offset=offset, length=length) for offset, length in items]
