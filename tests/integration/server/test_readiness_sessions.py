"""The database session of a readiness check is released to other threads once it has answered, and only if it works."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from relaybatch.db.connection import POOL
from relaybatch.readiness import CheckThread
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from relaybatch.db.connection import IdleConnection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_other_sessions() -> Iterator[None]:
    connection.close()
    yield
    connection.close()


def ask_the_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


def test_an_aborted_session_is_not_released_to_the_pool() -> None:
    """As when a payload store hangs after its marker was read from the database, and continues later."""
    queried, goes_on = threading.Event(), threading.Event()

    def hang() -> str:
        word = ask_the_database()
        queried.set()
        goes_on.wait()
        return word

    strand = CheckThread({"payload_store": hang})
    answer = strand.start()["payload_store"]
    queried.wait()
    strand.abort()
    goes_on.set()
    answer.result()
    assert ask_the_database() == "ok"


def test_a_session_is_released_before_its_result_is_set() -> None:
    """So that the payload store's check uses that session. An abort does not affect a thread that has it by then."""
    goes_on = threading.Event()
    taken: list[IdleConnection | None] = []

    def wait_and_ask() -> str:
        goes_on.wait()
        return ask_the_database()

    strand = CheckThread({"database": wait_and_ask})
    answer = strand.start()["database"]
    answer.add_done_callback(lambda _: taken.append(POOL.acquire(database=connection.settings_dict["NAME"])))
    answer.add_done_callback(lambda _: strand.abort())
    goes_on.set()
    answer.result()
    wait_until(lambda: len(taken) == 1, lambda: "no answer")
    assert taken[0] is not None
    taken[0].raw.execute("SELECT 1")
    taken[0].raw.close()
