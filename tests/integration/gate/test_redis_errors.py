"""An error or a wrong reply of Redis is treated as an outage by every process that uses it."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from typing import TYPE_CHECKING

import pytest
import redis

from batches.publishing import broker
from relaybatch.celery import app
from routing.gate import breakers, closed_breakers
from routing.gate import redis as gate_redis
from routing.gate.liveness import liveness
from routing.gate.redis import RedisUnavailable
from tests.support.calls.admissions import ERROR, Gate, rule
from tests.support.proxies.redis_proxy import (
    ERROR_REPLIES,
    INVALID_REPLIES,
    MAXCLIENTS,
    READONLY,
    WRITES,
    RedisProxy,
)
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client
    from pytest_django import Settings

ANSWERS = ERROR_REPLIES | INVALID_REPLIES
each_answer = pytest.mark.parametrize("reply", ANSWERS.values(), ids=ANSWERS)


@pytest.fixture
def proxy(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisProxy]:
    with redis.Redis.from_url(settings.REDIS_URL) as client, RedisProxy(settings.REDIS_URL) as proxy:
        client.flushdb()
        settings.REDIS_URL = proxy.url
        monkeypatch.setitem(app.conf, "broker_url", proxy.url)
        clear_connections()
        yield proxy
        client.flushdb()
    clear_connections()


def clear_connections() -> None:
    gate_redis.client.cache_clear()
    liveness._reset()
    broker._connection.cache_clear()
    broker._circuit_open_until = 0.0


@each_answer
def test_a_call_waits_at_the_gate(proxy: RedisProxy, reply: bytes) -> None:
    gate = Gate(keys=("one", "two", "three"))
    for commands in (WRITES, frozenset[str]()):
        closed_breakers.clear_cache()
        proxy.answer(reply, commands=commands)
        denial = gate.denial()
        assert (denial.postponement.reason, denial.postponement.must_wait) == ("redis_away", True)
        proxy.forward()
        assert gate.passes()


@each_answer
def test_a_response_counts_although_redis_is_unavailable(proxy: RedisProxy, reply: bytes) -> None:
    held = Gate(keys=("one", "two"), rules=(rule("concurrency", 1),)).acquire()
    for commands in (WRITES, frozenset[str]()):
        proxy.answer(reply, commands=commands)
        assert held.next_key(ERROR) is None
    held.release()


@pytest.mark.parametrize("index", [0, 2, -1])
def test_no_key_is_taken_that_the_binding_does_not_have(proxy: RedisProxy, index: int) -> None:
    proxy.answer(
        b"*4\r\n$8\r\nadmitted\r\n:%d\r\n:0\r\n:1\r\n" % index, commands=frozenset({"EVALSHA", "EVAL"})
    )
    assert Gate().denial().postponement.reason == "redis_away"


def test_a_server_that_became_a_replica_is_left_for_the_one_that_has_its_address_now(
    proxy: RedisProxy,
) -> None:
    gate = Gate()
    assert gate.passes()
    closed_breakers.clear_cache()
    proxy.answer(READONLY, commands=WRITES, on_new_connections=False)
    assert gate.passes()


@each_answer
def test_messages_that_redis_does_not_take_are_sent_later(proxy: RedisProxy, reply: bytes) -> None:
    proxy.answer(reply)
    with contextlib.suppress(*broker.BROKER_ERRORS):
        broker.send_messages([uuid.uuid4()])
    with contextlib.suppress(*broker.BROKER_ERRORS):
        broker.queue_length()
    proxy.forward()
    broker.send_messages([uuid.uuid4()])
    assert broker.queue_length() == 1


def test_messages_go_to_the_server_that_has_the_address_of_one_that_became_a_replica(
    proxy: RedisProxy,
) -> None:
    broker.send_messages([uuid.uuid4()])
    proxy.answer(READONLY, commands=WRITES, on_new_connections=False)
    with pytest.raises(broker.BROKER_ERRORS):
        broker.send_messages([uuid.uuid4()])
    broker.send_messages([uuid.uuid4()])
    assert broker.queue_length() == 2


@each_answer
@pytest.mark.django_db
def test_breaker_states_are_unavailable(proxy: RedisProxy, reply: bytes) -> None:
    host_keys = make_catalog("http://127.0.0.1:1").host_keys
    proxy.answer(reply)
    with pytest.raises(RedisUnavailable):
        breakers.breaker_states(host_keys)


@each_answer
def test_a_sign_of_life_is_given_again_when_redis_takes_it(proxy: RedisProxy, reply: bytes) -> None:
    proxy.answer(reply)
    liveness.heartbeat()
    proxy.forward()
    liveness.heartbeat(clock=lambda: time.monotonic() + 3600)
    assert gate_redis.client().exists(f"rb:gate2:liveness:{liveness.id}") == 1


@each_answer
@pytest.mark.django_db(transaction=True)
def test_it_is_not_ready(proxy: RedisProxy, client: Client, reply: bytes) -> None:
    proxy.answer(reply, commands=WRITES)
    response = client.get("/readyz")
    word = "answers wrongly" if reply in INVALID_REPLIES.values() else "answers with an error"
    word = "does not answer" if reply == MAXCLIENTS else word
    assert (response.status_code, json.loads(response.content)["checks"]["redis"]) == (503, word)
