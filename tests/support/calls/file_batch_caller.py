"""A caller of a web process who uploads files and makes batches of them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import requests

from tests.support.calls.file_calls import form, part
from tests.support.rows.file_batches import body, line
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Request, Upstream

ITEMS = 60
ENDED = ("completed", "failed", "expired", "cancelled")


class FileBatchCaller:
    """A caller of the web process, who uploads, creates and waits."""

    def __init__(self, web: Web, catalog: SimpleNamespace) -> None:
        self.origin = web.origin
        self.headers = catalog.headers

    def create(self, content: bytes) -> str:
        upload = form(part("purpose", b"batch"), part("file", content, filename="in.jsonl"))
        headers = self.headers | {"Content-Type": "multipart/form-data; boundary=b0undary"}
        file = self._answer(requests.post(f"{self.origin}/v1/files", upload, headers=headers, timeout=30))
        given = {
            "input_file_id": file["id"],
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        created = requests.post(f"{self.origin}/v1/batches", json=given, headers=self.headers, timeout=30)
        batch_id: str = self._answer(created)["id"]
        return batch_id

    def status(self, batch_id: str) -> Any:
        answer = requests.get(f"{self.origin}/v1/batches/{batch_id}", headers=self.headers, timeout=30)
        return self._answer(answer)

    def cancel(self, batch_id: str) -> None:
        path = f"{self.origin}/v1/batches/{batch_id}/cancel"
        self._answer(requests.post(path, headers=self.headers, timeout=30))

    def wait(self, batch_id: str) -> Any:
        wait_until(
            lambda: self.status(batch_id)["status"] in ENDED, lambda: json.dumps(self.status(batch_id))
        )
        return self.status(batch_id)

    def lines(self, file_id: str) -> list[Any]:
        path = f"{self.origin}/v1/files/{file_id}/content"
        answer = requests.get(path, headers=self.headers, timeout=30)
        assert answer.status_code == 200
        return [json.loads(one) for one in answer.content.split(b"\n")[:-1]]

    def _answer(self, answer: requests.Response) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def file_caller(web: Web, catalog: SimpleNamespace) -> FileBatchCaller:
    return FileBatchCaller(web, catalog)


def content(count: int = ITEMS) -> bytes:
    return b"\n".join(line(f"item-{number}", body=body(f"say {number}")) for number in range(count))


def number_of(request: Request) -> int:
    text: str = json.loads(request.body)["messages"][0]["content"]
    return int(text.removeprefix("say "))


def sends_per_item(upstream: Upstream) -> Counter[str]:
    return Counter(request.headers["idempotency-key"] for request in upstream.requests)
