"""The worker's broker connection: retry through any outage of Redis, without a limit."""

from __future__ import annotations

from typing import Any, Self

from celery.app.amqp import AMQP
from kombu import Connection
from kombu.exceptions import OperationalError
from kombu.transport import redis, virtual

from relaybatch.broker.redis_errors import REDIS_UNAVAILABLE


class DiscardingQoS(virtual.QoS):
    """Return unacknowledged messages to the queue when a worker stops, and discard those that Redis does not take.

    kombu would write the latter to a file in /tmp. Messages are hints: the sweeper publishes their items again.
    """

    def restore_unacked(self) -> list[Any]:  # type: ignore[override]
        super().restore_unacked()
        return []


class ResilientChannel(redis.Channel):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.QoS = DiscardingQoS  # type: ignore[assignment]


class ResilientTransport(redis.Transport):
    """Treat an error reply of Redis as a broken connection, which is retried. Celery would end the process."""

    Channel = ResilientChannel
    connection_errors = (*redis.Transport.connection_errors, OperationalError, *REDIS_UNAVAILABLE)


class ResilientConnection(Connection):
    """Reconnect every second. Celery's own backoff grows to half a minute."""

    def get_transport_cls(self) -> type[ResilientTransport]:
        return ResilientTransport

    def ensure_connection(self, *args: Any, **kwargs: Any) -> Self:
        every_second = {"interval_start": 1, "interval_step": 1, "interval_max": 1}
        return super().ensure_connection(*args, **every_second | kwargs)


class ResilientAMQP(AMQP):
    Connection = ResilientConnection
