"""How a worker's connection fetches messages: what waits comes together, as far as there is room for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis
from django.conf import settings
from kombu import Exchange, Queue

from relaybatch.broker.connection import ResilientConnection
from relaybatch.conf.url_settings import broker_url

if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUE = Queue("fetching", Exchange(""), routing_key="fetching")
OPTIONS = {"ack_emulation": False}


@pytest.fixture
def connection() -> Iterator[ResilientConnection]:
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.delete(QUEUE.name)
    with ResilientConnection(broker_url(settings.REDIS_URL), transport_options=OPTIONS) as connection:
        yield connection
    client.delete(QUEUE.name)
    client.close()


def commands() -> int:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        stats = client.info("commandstats")
    return sum(int(stats.get(f"cmdstat_{name}", {}).get("calls", 0)) for name in ("brpop", "rpop"))


def test_messages_that_wait_are_fetched_with_one_command_as_far_as_there_is_room(
    connection: ResilientConnection,
) -> None:
    received: list[int] = []
    with connection.Producer() as producer:
        for number in range(10):
            producer.publish(number, routing_key=QUEUE.name, exchange="", serializer="json")
    before = commands()
    consumer = connection.Consumer(
        [QUEUE], callbacks=[lambda number, message: received.append(number)], accept=["json"]
    )
    consumer.qos(prefetch_count=6)
    with consumer:
        connection.drain_events(timeout=5)
        assert received == [0, 1, 2, 3, 4, 5], "the oldest first, and no more than there is room for"
        assert commands() - before == 2
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            assert client.llen(QUEUE.name) == 4


def test_of_messages_that_redis_does_not_take_back_only_the_first_is_tried(
    connection: ResilientConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them would wait for a time-out, in the thread that has to reconnect."""
    tried: list[object] = []

    def restore(message: object, **_: object) -> None:
        tried.append(message)
        raise redis.exceptions.TimeoutError

    with connection.Producer() as producer:
        for number in range(5):
            producer.publish(number, routing_key=QUEUE.name, exchange="", serializer="json")
    consumer = connection.Consumer([QUEUE], callbacks=[lambda *_: None], accept=["json"])
    consumer.qos(prefetch_count=5)
    with consumer:
        connection.drain_events(timeout=5)
        channel: Any = consumer.channel
        monkeypatch.setattr(channel, "_restore", restore)
        assert channel.qos.restore_unacked() == []
        assert len(tried) == 1
        assert not channel.qos._delivered
