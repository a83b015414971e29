"""What calls look up is renewed by a thread beside them, and is never older for that."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection

from relaybatch.db.connection import POOL, release_connection
from routing import cache_renewal
from routing.calls.failures import CallFailed
from routing.credentials.recheck import recheck
from routing.models import Model, Policy, RelayKey
from routing.resolution.resolve import resolve_model
from tests.support.calls.upstream_calls import caller_of
from tests.support.rows.catalog import MODELS, make_catalog
from tests.support.run.cache_clock import clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries

    from tests.support.run.cache_clock import CacheClock

__all__ = ["clock"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


@pytest.fixture
def refusal(rows: SimpleNamespace, clock: CacheClock) -> Callable[[], str]:
    """Both look-ups of an item; returns why it may not be sent, or nothing."""
    caller = caller_of(rows)

    def refusal() -> str:
        try:
            recheck(caller)
        except CallFailed as failed:
            return failed.failure.code
        found = resolve_model(policy_id=rows.policy.id, model_name=MODELS["openai"], adapter="openai")
        return found.failure.code if found.failure else ""

    return refusal


def backend_of_this_thread() -> int:
    """The server's process for its connection, which becomes idle."""
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    release_connection()
    return int(pid)


def renew_beside() -> None:
    thread = threading.Thread(target=cache_renewal.renew_used)
    thread.start()
    thread.join()


def test_a_renewed_value_costs_its_user_no_query(
    refusal: Callable[[], str], clock: CacheClock, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    refusal()
    for _ in range(4):
        with django_assert_num_queries(0):
            assert refusal() == ""
        clock.advance(0.35)
        renew_beside()


@pytest.mark.parametrize("is_renewed", [True, False])
@pytest.mark.parametrize(
    ("rows_of", "code"),
    [(RelayKey, "credential_disabled"), (Policy, "policy_disabled"), (Model, "model_disabled")],
)
def test_what_is_disabled_is_refused_within_the_second(
    refusal: Callable[[], str], clock: CacheClock, rows_of: Any, code: str, is_renewed: bool
) -> None:
    assert [refusal(), refusal()] == ["", ""]
    rows_of.objects.update(enabled=False)
    clock.advance(0.35)
    assert refusal() == ""
    if is_renewed:
        renew_beside()
    else:
        clock.advance(0.15)
    assert refusal() == code


def test_what_nobody_uses_is_not_read_again(
    refusal: Callable[[], str], clock: CacheClock, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    refusal()
    clock.advance(0.35)
    with django_assert_num_queries(0):
        cache_renewal.renew_used()


def test_the_thread_keeps_no_connection(refusal: Callable[[], str], clock: CacheClock) -> None:
    assert [refusal(), refusal()] == ["", ""]
    connection.close()
    clock.advance(0.35)
    renew_beside()
    assert [idle.raw.closed for idle in POOL._idle] == [False]


def test_the_thread_does_not_keep_a_connection_that_broke(
    refusal: Callable[[], str], clock: CacheClock, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    assert [refusal(), refusal()] == ["", ""]
    with ThreadPoolExecutor(1) as thread:
        idle = thread.submit(backend_of_this_thread).result(10)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [idle])
        clock.advance(0.35)
        for _ in range(2):
            thread.submit(cache_renewal.renew_used).result(10)
    clock.advance(0.35)
    with django_assert_num_queries(0):
        assert refusal() == ""


def test_while_the_database_is_away_values_get_no_older_and_the_thread_goes_on(
    refusal: Callable[[], str], clock: CacheClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [refusal(), refusal()] == ["", ""]
    with monkeypatch.context() as away:
        connection.close()  # and with it the idle ones
        with socket.create_server(("127.0.0.1", 0)) as listener:
            away.setitem(connection.settings_dict, "PORT", str(listener.getsockname()[1]))
        clock.advance(0.35)
        renew_beside()
        assert refusal() == ""
        clock.advance(0.15)
        with pytest.raises(OperationalError):
            refusal()
    assert [refusal(), refusal()] == ["", ""]
    clock.advance(0.35)
    renew_beside()
    clock.advance(0.35)
    assert refusal() == ""
