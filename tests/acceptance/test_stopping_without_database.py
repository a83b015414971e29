"""Every process stops in time while PostgreSQL is down, or accepts connections and does not answer."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from batches.models import BatchItem
from tests.support.proxies.database_proxy import DatabaseProxy
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import Deployment, wait_for_end, wait_until
from tests.support.servers.web import web_process
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.deployment import Process
    from tests.support.upstream.upstream import Upstream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.endurance]

GRACE_SECONDS = 1
# How much longer than the grace a process manager should wait (docs/operating/operations.md).
MARGIN_SECONDS = 5
WAYS: dict[str, Callable[[DatabaseProxy], None]] = {
    "down": DatabaseProxy.go_down,
    "hanging": DatabaseProxy.stop_responding,
}


@pytest.fixture
def proxy(transactional_db: None) -> Iterator[DatabaseProxy]:
    with DatabaseProxy() as proxy:
        yield proxy


@pytest.fixture
def deployment(deployment: Deployment, proxy: DatabaseProxy, tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(
        tmp_path, DATABASE_URL=proxy.url, RELAY_SHUTDOWN_GRACE_S=str(GRACE_SECONDS)
    ) as behind_the_proxy:
        yield behind_the_proxy


def ends_in_time(process: Process) -> None:
    process.signal(signal.SIGTERM)
    wait_until(lambda: not process.is_alive, process.log, seconds=GRACE_SECONDS + MARGIN_SECONDS)


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_that_runs_nothing_ends(
    deployment: Deployment, proxy: DatabaseProxy, catalog: SimpleNamespace, way: str
) -> None:
    """Whatever the grace is, which is for running items only."""
    worker = deployment.worker(RELAY_SHUTDOWN_GRACE_S="60")
    wait_for_end(submit(catalog, chat_body()))
    WAYS[way](proxy)
    wait_until(lambda: proxy.held > 0 or "database unavailable" in worker.log(), worker.log)
    ends_in_time(worker)
    assert worker.stop() == 0, worker.log()


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_with_running_items_ends(
    deployment: Deployment, proxy: DatabaseProxy, catalog: SimpleNamespace, upstream: Upstream, way: str
) -> None:
    """One item has its response and cannot be settled, one waits for its response; both become a lost worker's."""
    gate = threading.Event()
    upstream.handler = lambda request: answers.held(gate) if b"answered" in request.body else answers.hang()
    worker = deployment.worker()
    batch = submit(catalog, chat_body("answered"), chat_body("waiting"))
    upstream.wait_for(lambda up: up.in_flight == 2)
    WAYS[way](proxy)
    gate.set()
    upstream.wait_for(lambda up: up.in_flight == 1)
    ends_in_time(worker)
    assert worker.stop() == 0, worker.log()
    proxy.forward()
    deployment.sweeper()
    wait_for_end(batch)
    assert set(BatchItem.objects.of(batch).values_list("error_code", flat=True)) == {"worker_lost"}


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_that_waits_for_the_database_to_start_ends(
    deployment: Deployment, proxy: DatabaseProxy, way: str
) -> None:
    WAYS[way](proxy)
    worker = deployment.worker(ready=False)
    wait_until(lambda: proxy.held > 0 or "database unavailable" in worker.log(), worker.log)
    ends_in_time(worker)


@pytest.mark.parametrize("way", WAYS)
def test_a_sweeper_ends(
    deployment: Deployment, proxy: DatabaseProxy, catalog: SimpleNamespace, way: str
) -> None:
    sweeper = deployment.sweeper()
    wait_for_end(submit(catalog, chat_body(), lifetime_seconds=1))
    WAYS[way](proxy)
    wait_until(lambda: proxy.held > 0 or "database unavailable" in sweeper.log(), sweeper.log)
    ends_in_time(sweeper)
    assert sweeper.stop() == 0, sweeper.log()


@pytest.mark.parametrize("way", WAYS)
def test_a_web_process_with_a_waiting_request_ends(
    proxy: DatabaseProxy, catalog: SimpleNamespace, tmp_path: Path, way: str
) -> None:
    with web_process(tmp_path, DATABASE_URL=proxy.url, RELAY_SHUTDOWN_GRACE_S=str(GRACE_SECONDS)) as web:
        assert web.call("GET", "/v1/batches", headers=catalog.headers).status == 200
        WAYS[way](proxy)
        asking = threading.Thread(target=lambda: _ask(web, catalog.headers))
        asking.start()
        web.process.request_stop()
        wait_until(lambda: not web.process.is_alive, web.log, seconds=GRACE_SECONDS + MARGIN_SECONDS)
        asking.join()


def _ask(web: object, headers: dict[str, str]) -> None:
    with contextlib.suppress(Exception):
        web.call("GET", "/v1/batches", headers=headers)  # type: ignore[attr-defined]
