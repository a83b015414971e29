"""Batches of files on real processes: uploaded, validated, run, finalized; and what a kill at any point changes."""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import requests

from batches.models import Batch, BatchItem, File
from routing.failpoints import FILE_POINTS
from tests.support.calls.file_calls import form, part
from tests.support.rows.file_batches import body, line
from tests.support.servers.deployment import wait_until
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Answer, Request, Upstream

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = 60
ENDED = ("completed", "failed", "expired", "cancelled")


class Caller:
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
def caller(web: Web, catalog: SimpleNamespace) -> Caller:
    return Caller(web, catalog)


def content(count: int = ITEMS) -> bytes:
    return b"\n".join(line(f"item-{number}", body=body(f"say {number}")) for number in range(count))


def half_fail(request: Request) -> Answer:
    number = _number(request)
    return answers.usable() if number % 2 else answers.status(400)


def _number(request: Request) -> int:
    text: str = json.loads(request.body)["messages"][0]["content"]
    return int(text.removeprefix("say "))


def sends_per_item(upstream: Upstream) -> Counter[str]:
    return Counter(request.headers["idempotency-key"] for request in upstream.requests)


@pytest.mark.parametrize("point", FILE_POINTS)
def test_a_sweeper_killed_at_any_point_of_a_batch_of_files_changes_nothing_in_its_end(
    caller: Caller, deployment: Deployment, upstream: Upstream, point: str
) -> None:
    upstream.handler = half_fail
    deployment.worker()
    victim = deployment.sweeper(RELAY_FAULT=f"{point}:kill")
    batch_id = caller.create(content())
    wait_until(lambda: not victim.is_alive, victim.log)
    deployment.sweeper()
    found = caller.wait(batch_id)
    assert (found["status"], found["errors"]) == ("completed", None)
    assert found["request_counts"] == {"total": ITEMS, "completed": ITEMS // 2, "failed": ITEMS // 2}
    assert found["usage"]["total_tokens"] > 0
    output, errors = caller.lines(found["output_file_id"]), caller.lines(found["error_file_id"])
    assert [one["custom_id"] for one in output] == [f"item-{number}" for number in range(1, ITEMS, 2)]
    assert [one["custom_id"] for one in errors] == [f"item-{number}" for number in range(0, ITEMS, 2)]
    assert set(sends_per_item(upstream).values()) == {1}
    assert File.objects.filter(purpose="batch_output").count() == 2
    assert BatchItem.objects.count() == ITEMS


def test_two_sweepers_that_both_believe_to_be_the_one_make_one_batch(
    caller: Caller, deployment: Deployment, upstream: Upstream
) -> None:
    """The first is stopped while it packs, loses its lock, and wakes up when the second has done its work."""
    deployment.worker()
    first = deployment.sweeper(RELAY_FAULT="after_packing:stop,after_output_files:stop")
    batch_id = caller.create(content())
    wait_until(lambda: _is_stopped(first.pid), first.log)
    deployment.sweeper()
    found = caller.wait(batch_id)
    first.signal(signal.SIGCONT)
    assert (found["status"], found["request_counts"]["completed"]) == ("completed", ITEMS)
    assert set(sends_per_item(upstream).values()) == {1}
    assert first.stop() == 0
    assert BatchItem.objects.count() == ITEMS
    assert Batch.objects.get().total_items == ITEMS
    assert caller.status(batch_id) == found


def _is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def test_a_cancelled_batch_keeps_what_was_paid_for(
    caller: Caller, deployment: Deployment, upstream: Upstream
) -> None:
    def some_hang(request: Request) -> Answer:
        return answers.usable() if _number(request) < 10 else answers.hang()

    upstream.handler = some_hang
    deployment.worker()
    deployment.sweeper()
    batch_id = caller.create(content())
    wait_until(
        lambda: caller.status(batch_id)["request_counts"]["completed"] == 10,
        lambda: json.dumps(caller.status(batch_id)),
    )
    caller.cancel(batch_id)
    found = caller.wait(batch_id)
    assert (found["status"], found["request_counts"]["completed"]) == ("cancelled", 10)
    assert len(caller.lines(found["output_file_id"])) == 10
    cancelled = caller.lines(found["error_file_id"])
    assert {one["error"]["code"] for one in cancelled} == {"batch_cancelled"}
    assert len(cancelled) == ITEMS - 10


def test_a_wrong_file_fails_without_a_call(
    caller: Caller, deployment: Deployment, upstream: Upstream
) -> None:
    deployment.worker()
    deployment.sweeper()
    found = caller.wait(caller.create(content(2) + b"\n{\n" + line("item-0")))
    assert found["status"] == "failed"
    assert [(error["code"], error["line"]) for error in found["errors"]["data"]] == [
        ("invalid_json_line", 3),
        ("duplicate_custom_id", 4),
    ]
    assert upstream.requests == []


def test_what_is_wrong_in_a_body_fails_its_request_alone_and_the_rest_arrives_byte_for_byte(
    caller: Caller, deployment: Deployment, upstream: Upstream
) -> None:
    odd = '{"model":"echo-1", "n":1.0,"big":1180591620717411303424,"t":"\u2028\u0085\\u0000é","messages":[]}'
    wrong = {
        "stream": '{"model":"echo-1","stream":true}',
        "streamed": '{"model":"echo-1","stream":"yes"}',
        "no model": "{}",
        "two models": '{"model":"echo-1","Model":"echo-1"}',
        "unknown": '{"model":"no such/model: 😀"}',
    }
    lines = [
        f'{{"custom_id":"{name}","method":"POST","url":"/v1/chat/completions","body":{text}}}'
        for name, text in {"odd": odd, **wrong}.items()
    ]
    deployment.worker()
    deployment.sweeper()
    found = caller.wait(caller.create("\r\n\n".join(lines).encode()))
    assert found["request_counts"] == {"total": 6, "completed": 1, "failed": 5}
    statuses = {
        one["custom_id"]: (one["response"]["status_code"], one["response"]["body"]["error"]["code"])
        for one in caller.lines(found["error_file_id"])
    }
    assert statuses == dict.fromkeys(wrong, (400, "invalid_item")) | {"unknown": (404, "model_not_found")}
    assert [request.body for request in upstream.requests] == [odd.encode()]
