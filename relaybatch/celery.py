"""The Celery app. Its only task runs an item (docs/architecture.md)."""

from __future__ import annotations

import os
import sys

from celery import Celery
from celery.signals import setup_logging
from kombu import Exchange, Queue

# At a worker's start Celery would run Django's checks, which load every route and admin page, and discard the result.
os.environ["CELERY_SKIP_CHECKS"] = "1"

from django.conf import settings

from batches.publishing.task_names import QUEUE_NAME
from relaybatch.broker.connection import ResilientAMQP
from relaybatch.conf.startup import exit_on_bad_config
from relaybatch.conf.url_settings import broker_url

with exit_on_bad_config():
    # Celery tries several ways to find its app, and would report the error of the last one instead of this one.
    redis_url = settings.REDIS_URL


app = Celery("relaybatch", amqp=ResilientAMQP)
app.conf.update(
    broker_url=broker_url(redis_url),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # No round trips for acknowledgements: a message is a hint, and the sweeper publishes lost ones again.
    broker_transport_options={
        "ack_emulation": False,
        "socket_connect_timeout": 5,
        # Longer than Redis takes to say that no message came. Else a frozen server would hold up the reconnect.
        "socket_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
    # The default exchange needs no binding in Redis, so that an emptied Redis loses no route.
    task_queues=[Queue(QUEUE_NAME, Exchange(""), routing_key=QUEUE_NAME)],
    task_default_queue=QUEUE_NAME,
    task_default_exchange="",
    task_default_routing_key=QUEUE_NAME,
    task_create_missing_queues=False,
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    task_serializer="json",
    accept_content=["json"],
    worker_concurrency=settings.RELAY_BATCH_CONCURRENCY,
    # Acknowledged when it has run: a worker fetches as many messages as it has threads, and leaves the others.
    task_acks_late=True,
    worker_pool="relaybatch.broker.thread_pool:ItemThreadPool",
    worker_consumer="relaybatch.broker.consumer:ResilientConsumer",
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    timezone="UTC",
    # Celery closes Django's connections around a task once they served this many tasks, so never: to connect costs five
    # times as much as an item. The claim retries on a broken connection, and connects again.
    CELERY_DB_REUSE_MAX=sys.maxsize,
)
app.autodiscover_tasks()


@setup_logging.connect
def keep_django_logging(**_: object) -> None:
    """Keep Django's LOGGING: with a receiver of this signal, Celery does not configure its own format."""
