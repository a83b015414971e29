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
RESPONSE_TIMEOUT_SECONDS = 2.0
# Who publishes for many owners meets the silence once, not for each of them.
CIRCUIT_OPEN_SECONDS = 5.0
_circuit_open_until = 0.0


class BrokerCircuitOpen(OSError):  # noqa: N818 -- says what the broker is
    """It has not answered a moment ago, and is not asked."""


def send_messages(item_ids: Sequence[uuid.UUID]) -> None:
    """One message an item, in one batch: a round trip for all of them. Raises BROKER_ERRORS."""
    _with_circuit_breaker(lambda: _send_batch(item_ids))


def queue_length() -> int:
    """Messages that no worker has fetched yet. Raises BROKER_ERRORS."""
    return _with_circuit_breaker(_count_messages)


def _with_circuit_breaker(operation: Callable[[], T]) -> T:
    global _circuit_open_until
    started = time.monotonic()
    if started < _circuit_open_until:
        raise BrokerCircuitOpen
    try:
        return operation()
    except BROKER_ERRORS:
        if time.monotonic() > started + RESPONSE_TIMEOUT_SECONDS / 2:  # a refusal comes at once
            _circuit_open_until = time.monotonic() + CIRCUIT_OPEN_SECONDS
        raise


def _send_batch(item_ids: Sequence[uuid.UUID]) -> None:
    with _producer() as producer, producer.batch():
        for item_id in item_ids:
            _publish(producer, item_id)


def _count_messages() -> int:
    with _producer() as producer:
        return int(producer.channel.client.llen(QUEUE))


def _producer() -> Any:
    return pools.producers[_connection()].acquire(block=True)


@functools.cache
def _connection() -> Any:
    """What the pool copies. Not the workers' own connections: those wait for messages, silently and long."""
    options = {
        "socket_connect_timeout": RESPONSE_TIMEOUT_SECONDS,
        "socket_timeout": RESPONSE_TIMEOUT_SECONDS,
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
