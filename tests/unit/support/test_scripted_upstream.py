"""The scripted upstream itself: what other tests rely on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import requests

from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from tests.support.upstream.upstream import Upstream


def test_requests_are_remembered_as_they_came(upstream: Upstream) -> None:
    with requests.Session() as session:
        for path in ("chat/completions", "responses", "messages"):
            answer = session.post(f"{upstream.url}/v1/{path}", data=b'{"a":1.0}', timeout=10)
            assert "usage" in answer.json()

    assert [request.path for request in upstream.requests] == [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
    ]
    assert [request.body for request in upstream.requests] == [b'{"a":1.0}'] * 3
    assert [request.connection for request in upstream.requests] == [1, 1, 1]


def test_answers_come_in_the_order_of_the_script(upstream: Upstream) -> None:
    upstream.script(answers.status(529), answers.gzip({"ok": True}))
    url = f"{upstream.url}/v1/messages"

    assert requests.post(url, timeout=10).status_code == 529
    assert requests.post(url, timeout=10).json() == {"ok": True}
    assert requests.post(url, timeout=10).json() == answers.MESSAGE


def test_held_calls_are_counted(upstream: Upstream) -> None:
    gate = threading.Event()
    upstream.script(*[answers.held(gate)] * 3)
    callers = [
        threading.Thread(target=requests.post, args=(f"{upstream.url}/v1/messages",), kwargs={"timeout": 10})
        for _ in range(3)
    ]
    for caller in callers:
        caller.start()
    upstream.wait_for(lambda up: up.in_flight == 3)
    gate.set()
    for caller in callers:
        caller.join()

    assert upstream.max_in_flight == 3
