"""The broker's connection as workers need it: any outage of Redis is waited out, without end."""

from __future__ import annotations

from typing import Any, Self

from celery.app.amqp import AMQP
from kombu import Connection
from kombu.exceptions import OperationalError
from kombu.transport import redis, virtual

from relaybatch.broker.redis_errors import REDIS_UNAVAILABLE


class DiscardingQoS(virtual.QoS):
    """Puts unclaimed messages back at a worker's end, if it can: kombu would write the others to a file in /tmp.

    They are hints. The sweeper publishes their items again.
    """

    def restore_unacked(self) -> list[Any]:  # type: ignore[override]
        super().restore_unacked()
        return []


class ResilientChannel(redis.Channel):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.QoS = DiscardingQoS  # type: ignore[assignment]


class ResilientTransport(redis.Transport):
    """An error reply is an outage, as a broken connection is. Celery would end the process."""

    Channel = ResilientChannel
    connection_errors = (*redis.Transport.connection_errors, OperationalError, *REDIS_UNAVAILABLE)


class ResilientConnection(Connection):
    """Looks every second whether the broker is back. Celery waits longer after each try, up to half a minute."""

    def get_transport_cls(self) -> type[ResilientTransport]:
        return ResilientTransport

    def ensure_connection(self, *args: Any, **kwargs: Any) -> Self:
        every_second = {"interval_start": 1, "interval_step": 1, "interval_max": 1}
        return super().ensure_connection(*args, **every_second | kwargs)


class ResilientAMQP(AMQP):
    Connection = ResilientConnection
