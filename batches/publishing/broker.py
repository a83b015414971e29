"""Messages that say «look at this item». They may be lost, late or doubled: the row decides (claim.py)."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, TypeVar

from celery import current_app
from kombu import pools
from kombu.exceptions import BatchPublishError, OperationalError  # type: ignore[attr-defined]

from relaybatch.broker.redis_errors import REDIS_UNAVAILABLE

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Sequence

T = TypeVar("T")

QUEUE = "items"
TASK = "batches.run_item"
# What a broker that is away raises: kombu wraps connection errors, those within a batch in a class of their own, and
# lets some of redis-py's through.
BROKER_ERRORS = (OperationalError, BatchPublishError, *REDIS_UNAVAILABLE)


# Of everything that a publisher waits for. A server that is frozen, or behind a cut wire, refuses nothing.
ANSWER_SECONDS = 2.0
# Who publishes for many owners meets the silence once, not for each of them.
SILENCE_SECONDS = 5.0
_silent_until = 0.0


class BrokerSilent(OSError):  # noqa: N818 -- says what the broker is
    """It has not answered a moment ago, and is not asked."""


def send_messages(item_ids: Sequence[uuid.UUID]) -> None:
    """One message an item, in one batch: a round trip for all of them. Raises BROKER_ERRORS."""
    _unless_silent(lambda: _send(item_ids))


def queue_length() -> int:
    """Messages that no worker has fetched yet. Raises BROKER_ERRORS."""
    return _unless_silent(_count)


def _unless_silent(ask: Callable[[], T]) -> T:
    global _silent_until
    asked_at = time.monotonic()
    if asked_at < _silent_until:
        raise BrokerSilent
    try:
        return ask()
    except BROKER_ERRORS:
        if time.monotonic() > asked_at + ANSWER_SECONDS / 2:  # a refusal comes at once
            _silent_until = time.monotonic() + SILENCE_SECONDS
        raise


def _send(item_ids: Sequence[uuid.UUID]) -> None:
    with _producer() as producer, producer.batch():
        for item_id in item_ids:
            _publish(producer, item_id)


def _count() -> int:
    with _producer() as producer:
        return int(producer.channel.client.llen(QUEUE))


def _producer() -> Any:
    return pools.producers[_connection()].acquire(block=True)


@functools.cache
def _connection() -> Any:
    """What the pool copies. Not the workers' own connections: those wait for messages, silently and long."""
    options = {
        "socket_connect_timeout": ANSWER_SECONDS,
        "socket_timeout": ANSWER_SECONDS,
        "max_retries": 0,  # kombu would connect three times, and wait as often
    }
    return current_app.connection_for_write(transport_options=options)


def _publish(producer: Any, item_id: uuid.UUID) -> None:
    # The item's id names the message too: no further random id for each.
    message = current_app.amqp.as_task_v2(
        str(item_id), TASK, kwargs={"item_id": str(item_id)}, argsrepr="-", kwargsrepr="-", ignore_result=True
    )
    producer.publish(
        message.body,
        routing_key=QUEUE,
        exchange="",
        serializer="json",
        headers=message.headers,
        retry=False,
        **message.properties,
    )
