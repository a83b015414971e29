"""Deferred releases are sent at a heartbeat: a few at a time, and without a signal for any host key."""

from __future__ import annotations

import re
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from routing.gate import redis as gate_redis
from routing.gate.liveness import Liveness, liveness
from tests.support.calls.admissions import ERROR, Gate, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.support.calls.admissions import HeldAdmission

RESPONSE_SECONDS = 0.1
_COMMAND = re.compile(rb"(?:^|\r\n)\*\d")


def point_redis_at(settings: Settings, port: int) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{port}/0?protocol=2"
    clear_clients()


def clear_clients() -> None:
    gate_redis.client.cache_clear()
    gate_redis._script.cache_clear()


@pytest.fixture(autouse=True)
def _redis_is_back() -> Iterator[None]:
    yield
    clear_clients()
    liveness._reset()


def answer_slowly(listener: socket.socket, stop: threading.Event) -> None:
    connection, _ = listener.accept()
    with connection:
        while not stop.is_set() and (commands := connection.recv(65_536)):
            for _ in _COMMAND.findall(commands):
                stop.wait(RESPONSE_SECONDS)
                connection.sendall(b"+OK\r\n")


@pytest.fixture
def slow_redis() -> Iterator[int]:
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_slowly, args=(listener, stop))
        thread.start()
        yield listener.getsockname()[1]
        stop.set()
        gate_redis.client(connect_timeout_seconds=0.5, response_timeout_seconds=0.5).close()
        thread.join()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def release_unreported(settings: Settings, held: HeldAdmission) -> None:
    url = settings.REDIS_URL
    point_redis_at(settings, closed_port())
    held.release(ERROR)
    settings.REDIS_URL = url
    clear_clients()


def heartbeat() -> None:
    liveness.heartbeat(clock=lambda: time.monotonic() + 3600)


def test_a_failure_that_is_reported_late_opens_no_breaker(settings: Settings) -> None:
    gate = Gate(rules=(rule("concurrency", 1),))
    release_unreported(settings, gate.acquire())
    assert not gate.passes()
    heartbeat()
    assert gate.passes()


def test_a_release_that_redis_does_not_take_holds_up_no_other(settings: Settings) -> None:
    gate = Gate(rules=(rule("concurrency", 1),))
    held = gate.acquire()
    liveness.defer_release(plan=b"no plan", call={})
    release_unreported(settings, held)
    heartbeat()
    assert gate.passes()
    assert not liveness._deferred


def test_a_heartbeat_sends_the_deferred_releases_that_there_is_time_for(
    settings: Settings, slow_redis: int
) -> None:
    point_redis_at(settings, slow_redis)
    indebted = Liveness()
    for _ in range(20):
        indebted.defer_release(plan=b"{}", call={})
    began = time.monotonic()
    indebted.heartbeat()
    assert time.monotonic() - began < 1.5
    assert 10 < len(indebted._deferred) < 20
