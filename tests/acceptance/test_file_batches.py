"""Batches of files on real processes: uploaded, validated, run, finalized, cancelled.

Killed sweepers: tests/endurance/test_killed_sweepers.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.calls.file_batch_caller import ITEMS, FileBatchCaller, content, file_caller, number_of
from tests.support.rows.file_batches import line
from tests.support.servers.deployment import wait_until
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Answer, Request, Upstream

__all__ = ["file_caller"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_cancelled_batch_keeps_what_was_paid_for(
    file_caller: FileBatchCaller, deployment: Deployment, upstream: Upstream
) -> None:
    def some_hang(request: Request) -> Answer:
        return answers.usable() if number_of(request) < 10 else answers.hang()

    upstream.handler = some_hang
    deployment.worker()
    deployment.sweeper()
    batch_id = file_caller.create(content())
    wait_until(
        lambda: file_caller.status(batch_id)["request_counts"]["completed"] == 10,
        lambda: json.dumps(file_caller.status(batch_id)),
    )
    file_caller.cancel(batch_id)
    found = file_caller.wait(batch_id)
    assert (found["status"], found["request_counts"]["completed"]) == ("cancelled", 10)
    assert len(file_caller.lines(found["output_file_id"])) == 10
    cancelled = file_caller.lines(found["error_file_id"])
    assert {one["error"]["code"] for one in cancelled} == {"batch_cancelled"}
    assert len(cancelled) == ITEMS - 10


def test_a_wrong_file_fails_without_a_call(
    file_caller: FileBatchCaller, deployment: Deployment, upstream: Upstream
) -> None:
    deployment.worker()
    deployment.sweeper()
    found = file_caller.wait(file_caller.create(content(2) + b"\n{\n" + line("item-0")))
    assert found["status"] == "failed"
    assert [(error["code"], error["line"]) for error in found["errors"]["data"]] == [
        ("invalid_json_line", 3),
        ("duplicate_custom_id", 4),
    ]
    assert upstream.requests == []


def test_what_is_wrong_in_a_body_fails_its_request_alone_and_the_rest_arrives_byte_for_byte(
    file_caller: FileBatchCaller, deployment: Deployment, upstream: Upstream
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
    found = file_caller.wait(file_caller.create("\r\n\n".join(lines).encode()))
    assert found["request_counts"] == {"total": 6, "completed": 1, "failed": 5}
    statuses = {
        one["custom_id"]: (one["response"]["status_code"], one["response"]["body"]["error"]["code"])
        for one in file_caller.lines(found["error_file_id"])
    }
    assert statuses == dict.fromkeys(wrong, (400, "invalid_item")) | {"unknown": (404, "model_not_found")}
    assert [request.body for request in upstream.requests] == [odd.encode()]
