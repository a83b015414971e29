"""Messages that say «look at this item». They may be lost, late or doubled: the row decides (batches/claims.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery import current_app
from kombu.exceptions import BatchPublishError, OperationalError  # type: ignore[attr-defined]
from redis.exceptions import RedisError

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

QUEUE = "items"
TASK = "batches.run_item"
# What a broker that is away raises: kombu wraps connection errors, those within a batch in a class of their own, and
# lets some of redis-py's through.
BROKER_ERRORS = (OperationalError, BatchPublishError, RedisError, OSError)


def send_messages(item_ids: Sequence[uuid.UUID]) -> None:
    """One message an item, in one batch: a round trip for all of them. Raises BROKER_ERRORS."""
    with _producer() as producer, producer.batch():
        for item_id in item_ids:
            _publish(producer, item_id)


def queue_length() -> int:
    """Messages that no worker has fetched yet. Raises BROKER_ERRORS."""
    with _producer() as producer:
        return int(producer.channel.client.llen(QUEUE))


def _producer() -> Any:
    return current_app.producer_pool.acquire(block=True)


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
