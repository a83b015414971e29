"""With fewer database connections than threads, everything goes on, at most slower."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from batches.completion.cancel import cancel_batch
from tests.support.proxies.database_proxy import DatabaseProxy
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import Deployment, wait_for_end, wait_until
from tests.support.servers.few_connections import count_sessions, limited_account
from tests.support.servers.web import web_process
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.endurance]

# A web process of 8 threads wants 9, a worker of 8 slots 11, a sweeper 2.
CONNECTIONS = 6
CALLERS = 12


@pytest.fixture
def database_url(transactional_db: None) -> Iterator[str]:
    with limited_account(CONNECTIONS) as url:
        yield url


@contextlib.contextmanager
def callers_of(web: Web, headers: dict[str, str]) -> Iterator[Counter[tuple[int, str]]]:
    """Client threads that send one request after the other; yields their responses, counted by status and code."""
    responses: Counter[tuple[int, str]] = Counter()
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            reply = web.call("GET", "/v1/batches", headers=headers)
            responses[reply.status, reply.json.get("error", {}).get("code", "")] += 1

    threads = [threading.Thread(target=ask) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield responses
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_a_batch_is_finished_while_the_web_process_is_used_by_more_callers_than_there_are_connections(
    tmp_path: Path, catalog: SimpleNamespace, upstream: Upstream, database_url: str
) -> None:
    upstream.handler = lambda _: answers.after(0.02)
    with (
        web_process(tmp_path, DATABASE_URL=database_url) as web,
        Deployment(tmp_path, DATABASE_URL=database_url) as deployment,
        callers_of(web, catalog.headers) as responses,
    ):
        wait_until(lambda: responses.total() > 50, web.log)
        deployment.worker()
        deployment.sweeper()
        batch = submit(catalog, *[chat_body(f"item {number}") for number in range(40)])
        wait_for_end(batch)
        before = responses.total()
        wait_until(lambda: responses.total() > before + 50, web.log)
    assert batch.final_counts == {"completed": 40}
    assert set(responses) <= {(200, ""), (503, "database_unavailable")}
    assert responses[200, ""] > responses[503, "database_unavailable"]


def test_a_web_process_that_is_not_used_gives_its_connections_back(
    tmp_path: Path, catalog: SimpleNamespace, database_url: str
) -> None:
    with web_process(tmp_path, DATABASE_URL=database_url) as web:
        with callers_of(web, catalog.headers) as responses:
            wait_until(lambda: responses.total() > 50, web.log)
            assert count_sessions(database_url) > 0
        wait_until(lambda: count_sessions(database_url) == 0, web.log, seconds=10)


def test_a_worker_holds_no_connection_for_items_that_wait_for_their_upstream(
    tmp_path: Path, catalog: SimpleNamespace, upstream: Upstream, database_url: str
) -> None:
    """One connection for the worker monitor, which uses it twice a second."""
    upstream.handler = lambda _: answers.hang()
    with Deployment(tmp_path, DATABASE_URL=database_url) as deployment:
        worker = deployment.worker()
        batch = submit(catalog, *[chat_body()] * 8)
        upstream.wait_for(lambda up: up.in_flight == 8)
        wait_until(lambda: count_sessions(database_url) <= 1, worker.log, seconds=10)
        cancel_batch(batch)
        wait_for_end(batch)
    assert batch.final_counts == {"cancelled": 8}


def test_a_caller_that_sends_slowly_holds_no_connection(tmp_path: Path, catalog: SimpleNamespace) -> None:
    head = f"POST /v1/batches HTTP/1.1\r\nHost: x\r\nAuthorization: {catalog.headers['Authorization']}\r\n"
    with limited_account(1) as url, web_process(tmp_path, DATABASE_URL=url) as web, web.connected() as slow:
        slow.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        wait_until(lambda: count_sessions(url) == 1, web.log)
        wait_until(lambda: count_sessions(url) == 0, web.log, seconds=10)
        assert web.call("GET", "/v1/batches", headers=catalog.headers).status == 200


def test_a_page_of_the_admin_is_unavailable_while_the_database_is(tmp_path: Path) -> None:
    with DatabaseProxy() as proxy, web_process(tmp_path, DATABASE_URL=proxy.url) as web:
        proxy.go_down()
        page = web.call("GET", "/admin/", headers={"Cookie": f"sessionid={'a' * 32}"})
    assert (page.status, page.headers["retry-after"]) == (503, "5")
    assert b"The database does not answer; try again soon." in page.body
