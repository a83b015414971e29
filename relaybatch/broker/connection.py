"""The worker's broker connection: retry through any outage of Redis, without a limit."""

from __future__ import annotations

from typing import Any, Self

from celery.app.amqp import AMQP
from kombu import Connection
from kombu.exceptions import OperationalError
from kombu.transport import redis, virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads

from relaybatch.broker.redis_errors import REDIS_UNAVAILABLE


class DiscardingQoS(virtual.QoS):
    """Return unacknowledged messages to the queue, and discard them when Redis does not take the first of them.

    kombu would try each of them, with a time-out for each, and write them to a file in /tmp. Messages are hints: the
    sweeper publishes their items again.
    """

    def restore_unacked(self) -> list[Any]:  # type: ignore[override]
        self._flush()  # type: ignore[attr-defined]
        delivered: dict[str, Any] = self._delivered or {}
        try:
            while delivered:
                self.channel._restore(delivered.popitem()[1])
        except (*REDIS_UNAVAILABLE, OperationalError):
            delivered.clear()
        return []


class ResilientChannel(redis.Channel):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.QoS = DiscardingQoS  # type: ignore[assignment]

    def _brpop_read(self, **options: Any) -> bool:
        """Deliver the message that came, and those behind it for which there is room: one round trip for all of them.

        kombu would fetch each with a round trip, and two turns of its event loop.
        """
        super()._brpop_read(**options)  # type: ignore[misc]
        for queue in self.active_queues:
            if room := self.qos.can_consume_max_estimate():
                for message in self.client.rpop(queue, room) or ():
                    self.connection._deliver(loads(bytes_to_str(message)), queue)
        return True


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
