"""The Celery app. It runs items, and nothing else (docs/architecture.md)."""

from __future__ import annotations

import os
import sys

from celery import Celery
from celery.signals import setup_logging
from kombu import Exchange, Queue

# At a worker's start Celery would run Django's checks, which load every route and page, and drop what they say.
os.environ["CELERY_SKIP_CHECKS"] = "1"

from django.conf import settings

from batches.publishing.task_names import QUEUE_NAME
from relaybatch.broker.connection import ResilientAMQP
from relaybatch.conf.startup import exit_on_bad_config
from relaybatch.conf.url_settings import broker_url

with exit_on_bad_config():
    # Celery looks for its app in several ways, and would tell of the last one's error, not of this.
    redis_url = settings.REDIS_URL


app = Celery("relaybatch", amqp=ResilientAMQP)
app.conf.update(
    broker_url=broker_url(redis_url),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # No acknowledgement round trips: a message is a hint, and the sweeper publishes again what was lost.
    broker_transport_options={
        "ack_emulation": False,
        "socket_connect_timeout": 5,
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
    worker_pool="threads",
    worker_consumer="relaybatch.broker.consumer:SteadyConsumer",
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    timezone="UTC",
    # Celery closes Django's connections before and after every task, up to this many of them: connecting anew costs
    # five times what an item does. A broken one is met by the claim, which waits for the database and connects again.
    CELERY_DB_REUSE_MAX=sys.maxsize,
)
app.autodiscover_tasks()


@setup_logging.connect
def keep_django_logging(**_: object) -> None:
    """Celery would set up lines of its own form; with a receiver it leaves Django's LOGGING as it is."""
