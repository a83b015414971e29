"""A response belongs to its request: whatever an upstream sends, no caller gets the response to another's call."""

from __future__ import annotations

import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from relaybatch.log_format import JsonFormatter
from routing.resolution import resolve
from routing.transport import idle_connections
from routing.transport.idle_connections import IDLE_CONNECTIONS
from routing.upstream.send import send
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.gate_state import clear_gate
from tests.support.upstream.odd_responses import BAD, GOOD, WELL, body_with, prompt_in, prompt_of
from tests.support.upstream.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Answer, Request

pytestmark = pytest.mark.django_db

LATER = {name for name in (*GOOD, *BAD) if name.endswith("later")}


@pytest.fixture(autouse=True)
def _no_connections_of_other_tests() -> Iterator[None]:
    IDLE_CONNECTIONS.close_all()
    yield
    IDLE_CONNECTIONS.close_all()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections serve again without the silence that would hide what lies behind an answer."""
    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 0.0)


def said_to(catalog: SimpleNamespace, words: str) -> str:
    """The prompt that the upstream echoes; empty when the call failed."""
    outcome = send(call_of(catalog, body=body_with(words)))
    return prompt_in(outcome.body) if outcome.failure is None else ""


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", sorted(GOOD.keys() - LATER))
def test_an_odd_answer_is_its_own_calls_and_the_next_ones_are_their_own(
    upstream: Upstream, name: str
) -> None:
    catalog = make_catalog(upstream.url)
    upstream.handler = lambda request: GOOD[name] if prompt_of(request) == "first" else WELL

    said = [said_to(catalog, words) for words in ("first", "second", "third")]

    assert said == ["first", "second", "third"]


@pytest.mark.parametrize("name", sorted(LATER))
def test_what_comes_in_the_moment_behind_an_answer_meets_no_other_call(upstream: Upstream, name: str) -> None:
    catalog = make_catalog(upstream.url)
    upstream.handler = lambda request: GOOD[name] if prompt_of(request) == "first" else WELL

    assert said_to(catalog, "first") == "first"
    for words in ("second", "third", "fourth"):
        assert said_to(catalog, words) == words


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", sorted(LATER))
def test_what_came_while_a_connection_lay_idle_meets_no_other_call(upstream: Upstream, name: str) -> None:
    catalog = make_catalog(upstream.url)
    upstream.script(GOOD[name])
    upstream.handler = lambda _: WELL

    assert said_to(catalog, "first") == "first"
    upstream.wait_for(lambda up: up.in_flight == 0)
    assert [said_to(catalog, words) for words in ("second", "third")] == ["second", "third"]
    assert [request.connection for request in upstream.requests] == [1, 2, 3]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", sorted(BAD))
def test_an_answer_that_cannot_be_used_leaves_nothing_to_the_next_calls(
    upstream: Upstream, name: str
) -> None:
    catalog = make_catalog(upstream.url)
    upstream.handler = lambda request: BAD[name] if prompt_of(request) == "first" else WELL

    assert said_to(catalog, "first") == ""
    clear_gate()
    assert [said_to(catalog, words) for words in ("second", "third")] == ["second", "third"]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", sorted({**GOOD, **BAD}.keys() - LATER))
def test_a_connection_behind_an_odd_answer_is_not_used_again(upstream: Upstream, name: str) -> None:
    catalog = make_catalog(upstream.url)
    upstream.script({**GOOD, **BAD}[name])
    upstream.handler = lambda _: WELL

    said_to(catalog, "first")
    clear_gate()
    said_to(catalog, "second")

    plain = {"a hundred and fifty header lines", "headers of 100 KB"}
    first, second = upstream.requests
    assert (first.connection == second.connection) == (name in plain)


@pytest.mark.usefixtures("at_once")
def test_an_upstream_that_was_out_of_step_has_a_connection_for_each_request(
    upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = make_catalog(upstream.url)
    upstream.handler = lambda _: WELL
    said_to(catalog, "first")
    said_to(catalog, "second")
    assert upstream.connections == 1

    upstream.script(GOOD["twice"])
    for words in ("third", "fourth", "fifth"):
        said_to(catalog, words)

    assert upstream.connections == 3
    (record,) = caplog.records
    line = json.loads(JsonFormatter().format(record))
    assert (line["level"], line["logger"]) == ("WARNING", "routing.transport.idle_connections")
    assert line["event"] == "upstream connection out of step"
    assert line["host"] == "127.0.0.1"


def test_a_connection_serves_again_after_a_while_of_silence(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = make_catalog(upstream.url)
    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 3600.0)
    said_to(catalog, "first")
    said_to(catalog, "second")
    assert upstream.connections == 2

    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 0.0)
    said_to(catalog, "third")
    assert upstream.connections == 2


def test_with_enough_idle_connections_the_longest_silent_one_serves(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = make_catalog(upstream.url)
    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 3600.0)
    monkeypatch.setattr(idle_connections, "REUSE_WITHOUT_WAIT_CONNECTIONS", 3)

    for _ in range(5):
        said_to(catalog, "words")

    assert [request.connection for request in upstream.requests] == [1, 2, 3, 1, 2]


def test_more_idle_connections_than_the_process_may_have_are_closed(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = make_catalog(upstream.url)
    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 3600.0)
    monkeypatch.setattr(idle_connections, "MAX_IDLE_CONNECTIONS", 2)

    for _ in range(5):
        said_to(catalog, "words")

    upstream.wait_for(lambda up: up.open_connections == 2)


def test_an_idle_connection_has_one_descriptor_and_is_closed_when_it_is_too_old(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = make_catalog(upstream.url)
    monkeypatch.setattr(idle_connections, "MIN_IDLE_SECONDS", 3600.0)
    said_to(catalog, "words")
    before = descriptors_to(upstream)
    for _ in range(4):
        said_to(catalog, "words")
    assert (before, descriptors_to(upstream)) == (1, 5)

    IDLE_CONNECTIONS.close_expired()
    assert descriptors_to(upstream) == 5
    monkeypatch.setattr(idle_connections, "MAX_IDLE_SECONDS", 0.0)
    IDLE_CONNECTIONS.close_expired()
    assert descriptors_to(upstream) == 0
    upstream.wait_for(lambda up: up.open_connections == 0)


def descriptors_to(upstream: Upstream) -> int:
    """Of this process's own end of the connections."""
    port = f"{upstream.port:04X}"
    sockets = {
        line.split()[9]
        for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]
        if line.split()[2].endswith(f":{port}")
    }
    links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum(link.removeprefix("socket:[").rstrip("]") in sockets for link in links)


@pytest.mark.usefixtures("at_once")
def test_a_connection_of_a_call_aborted_after_its_response_serves_the_next_call(upstream: Upstream) -> None:
    """The aborted handle is detached from the connection, which may serve another call by then."""
    catalog = make_catalog(upstream.url)
    upstream.handler = lambda _: WELL
    call = call_of(catalog, body=body_with("first"))
    assert send(call).failure is None
    call.abort_handle.abort("cancelled")

    assert said_to(catalog, "second") == "second"
    assert upstream.connections == 1


@pytest.mark.usefixtures("at_once")
def test_owners_do_not_share_a_connection(upstream: Upstream) -> None:
    one = make_catalog(upstream.url)
    other = make_caller(one)

    for catalog in (one, other, one, other):
        said_to(catalog, "words")

    assert [request.connection for request in upstream.requests] == [1, 2, 1, 2]


@pytest.mark.django_db(transaction=True)
def test_two_owners_read_no_foreign_words_from_upstreams_that_misbehave_at_random() -> None:
    """Each upstream is a new one, which is not distrusted yet."""
    one = make_catalog("http://upstream.invalid")
    callers = (one, make_caller(one))
    said: dict[str, str] = {}
    for seed in range(6):
        with Upstream() as upstream:
            upstream.handler = random_answers(seed)
            one.host.base_url = upstream.url
            one.host.save()
            resolve.clear_cache()
            said |= echoes(callers, [f"{seed}-{number}" for number in range(100)])

    assert {words: back for words, back in said.items() if back not in ("", words)} == {}
    assert sum(bool(back) for back in said.values()) > 300


def random_answers(seed: int) -> Callable[[Request], Answer]:
    chance = random.Random(seed)
    ways = [*GOOD.values(), *BAD.values(), *[WELL] * 40]
    return lambda _: chance.choice(ways)


def echoes(callers: tuple[SimpleNamespace, ...], all_words: list[str]) -> dict[str, str]:
    """What came back for each, on eight threads, by the callers in turns."""

    def say(number: int) -> str:
        try:
            clear_gate()
            return said_to(callers[number % len(callers)], all_words[number])
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        return dict(zip(all_words, threads.map(say, range(len(all_words))), strict=True))


def test_what_an_upstream_wrote_into_its_headers_is_in_no_log_line(
    upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = make_catalog(upstream.url)
    for name in ("a header that is none, before the length", "chunks and a length"):
        upstream.script(GOOD[name])
        assert said_to(catalog, "first") == "first"

    assert caplog.records == []
