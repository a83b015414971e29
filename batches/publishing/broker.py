"""Messages that say «look at this item». They may be lost, late or doubled: the row decides (claim.py)."""

from __future__ import annotations

import functools
import logging
import time
from typing import TYPE_CHECKING, Any, TypeVar

from celery import current_app
from kombu import pools
from kombu.exceptions import BatchPublishError, OperationalError  # type: ignore[attr-defined]

from batches.publishing.task_names import QUEUE_NAME, TASK_NAME
from relaybatch.broker.redis_errors import REDIS_UNAVAILABLE

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

T = TypeVar("T")

# What an unavailable broker raises: kombu wraps connection errors, those within a batch in a class of their own, and
# lets some of redis-py's through.
BROKER_ERRORS = (OperationalError, BatchPublishError, *REDIS_UNAVAILABLE)

# Of everything that a publisher waits for. A server that is frozen, or behind a cut wire, rejects nothing.
RESPONSE_TIMEOUT_SECONDS = 2.0
# Who publishes for many owners waits for the time-out once, not for each of them.
CIRCUIT_OPEN_SECONDS = 5.0
_circuit_open_until = 0.0


class BrokerCircuitOpen(OSError):  # noqa: N818 -- says what the circuit is
    """The broker timed out a moment ago, and is not asked again yet."""


def send_messages(item_ids: Sequence[uuid.UUID]) -> None:
    """Send one message an item, in one batch: a round trip for all of them. Raises BROKER_ERRORS."""
    _with_circuit_breaker(lambda: _send_batch(item_ids))


def send_or_log(item_ids: Sequence[uuid.UUID]) -> int:
    """Send the messages; the number sent. While the broker is unavailable they are lost, and the sweeper sends them."""
    if not item_ids:
        return 0
    try:
        send_messages(item_ids)
    except BROKER_ERRORS as error:
        logger.warning("broker unavailable", extra={"reason": error_name(error), "items": len(item_ids)})
        return 0
    return len(item_ids)


def queue_length() -> int:
    """Count the messages that no worker has fetched yet. Raises BROKER_ERRORS."""
    return _with_circuit_breaker(_count_messages)


def error_name(error: Exception) -> str:
    # None of kombu's own classes says what Redis answered.
    return type(error.__cause__ or error).__name__


def _with_circuit_breaker(operation: Callable[[], T]) -> T:
    global _circuit_open_until
    started = time.monotonic()
    if started < _circuit_open_until:
        raise BrokerCircuitOpen
    try:
        return operation()
    except BROKER_ERRORS:
        # A broker that is down refuses the connection at once; only a time-out is worth avoiding.
        if time.monotonic() > started + RESPONSE_TIMEOUT_SECONDS / 2:
            _circuit_open_until = time.monotonic() + CIRCUIT_OPEN_SECONDS
        raise


def _send_batch(item_ids: Sequence[uuid.UUID]) -> None:
    with _producer() as producer, producer.batch():
        for item_id in item_ids:
            _publish(producer, item_id)


def _count_messages() -> int:
    with _producer() as producer:
        return int(producer.channel.client.llen(QUEUE_NAME))


def _producer() -> Any:
    return pools.producers[_connection()].acquire(block=True)


@functools.cache
def _connection() -> Any:
    """The connection that the pool copies. Not the workers' own ones: those wait for messages without a time-out."""
    options = {
        "socket_connect_timeout": RESPONSE_TIMEOUT_SECONDS,
        "socket_timeout": RESPONSE_TIMEOUT_SECONDS,
        "max_retries": 0,  # kombu would connect three times, and wait as often
    }
    return current_app.connection_for_write(transport_options=options)


def _publish(producer: Any, item_id: uuid.UUID) -> None:
    # The item's id names the message too: no further random id for each.
    message = current_app.amqp.as_task_v2(
        str(item_id),
        TASK_NAME,
        kwargs={"item_id": str(item_id)},
        argsrepr="-",
        kwargsrepr="-",
        ignore_result=True,
    )
    producer.publish(
        message.body,
        routing_key=QUEUE_NAME,
        exchange="",
        serializer="json",
        headers=message.headers,
        retry=False,
        **message.properties,
    )
