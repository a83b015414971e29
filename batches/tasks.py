"""The one Celery task, and what a worker process does at its start and stop."""

from __future__ import annotations

import gc
import logging
import uuid
from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from batches.execution.execute import execute_item
from batches.execution.worker_monitor import WorkerMonitor
from batches.publishing.publish import drain_publisher, request_publish
from batches.publishing.task_names import TASK_NAME
from relaybatch.db.connection import release_connection
from relaybatch.db.outage import DATABASE_UNAVAILABLE, retry_during_outage
from relaybatch.stop_signal import EXIT_MARGIN_SECONDS, StopSignal, exit_after
from routing.cache_renewal import start_cache_renewal
from routing.checks import require_readable_secrets

logger = logging.getLogger(__name__)

_monitors: list[WorkerMonitor] = []
_shutdown_requested, _shutdown_finished = StopSignal(), StopSignal()


@shared_task(name=TASK_NAME, ignore_result=True)
def run_item(*, item_id: str, **_: Any) -> None:
    """Look at one item and run it if it is waiting. Further arguments, of newer publishers, are ignored."""
    items = _monitors[-1].items
    if items.is_stopping:
        return
    try:
        claim = execute_item(uuid.UUID(item_id), in_flight=items)
    except Exception:
        logger.exception("task failed")
        raise
    finally:
        release_connection()
    if claim:
        request_publish(claim.owner_id)


@worker_init.connect
def start_worker_monitor(**_: Any) -> None:
    retry_during_outage(connection.ensure_connection)
    try:
        require_readable_secrets()
    except ImproperlyConfigured as error:
        # Celery logs a signal's errors and goes on; this one ends the process.
        raise SystemExit(str(error)) from error
    monitor = WorkerMonitor(slots=settings.RELAY_BATCH_CONCURRENCY)
    retry_during_outage(monitor.start)
    _monitors.append(monitor)
    start_cache_renewal()
    exit_after(_shutdown_requested, seconds=settings.RELAY_SHUTDOWN_GRACE_S + EXIT_MARGIN_SECONDS)
    exit_after(_shutdown_finished, seconds=EXIT_MARGIN_SECONDS)
    release_connection()
    _tune_garbage_collection()


def _tune_garbage_collection() -> None:
    """Collect rarely: what is loaded by now stays, and items leave few cycles."""
    # Looking through all of it again and again took a fifth of the processor's time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@worker_shutting_down.connect
def begin_shutdown(**_: Any) -> None:
    _shutdown_requested.set()
    for monitor in _monitors:
        monitor.begin_shutdown()


@worker_shutdown.connect
def finish_shutdown(**_: Any) -> None:
    """Publish what is pending and delete the worker row. Nothing runs any more, so there is no grace to wait for."""
    _shutdown_finished.set()
    drain_publisher()
    for monitor in _monitors:
        try:
            monitor.deregister()
        except DATABASE_UNAVAILABLE:
            # The sweeper deletes it.
            logger.warning("worker row not deleted")
