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
from batches.execution.worker_monitor import Watch
from batches.publishing.publish import finish_publishing, publish_soon
from relaybatch.db.connection import lend_connection
from relaybatch.db.outage import AWAY, patiently
from relaybatch.stop_signal import LAST_SECONDS, StopSignal, end_process_after
from routing.checks import require_readable_secrets

logger = logging.getLogger(__name__)

_watches: list[Watch] = []
_told_to_end, _left = StopSignal(), StopSignal()


@shared_task(name="batches.run_item", ignore_result=True)
def run_item(*, item_id: str, **_: Any) -> None:
    """Looks at one item and runs it if it is waiting. Further arguments are of newer publishers: no harm."""
    items = _watches[-1].items
    if items.stopping:
        return
    try:
        claim = execute_item(uuid.UUID(item_id), running=items)
    except Exception:
        logger.exception("an item could not be run")
        raise
    finally:
        lend_connection()
    if claim:
        publish_soon(claim.owner_id)


@worker_init.connect
def start_watch(**_: Any) -> None:
    patiently(connection.ensure_connection)
    try:
        require_readable_secrets()
    except ImproperlyConfigured as error:
        # Celery logs a signal's errors and goes on; this one ends the process.
        raise SystemExit(str(error)) from error
    watch = Watch(slots=settings.RELAY_BATCH_CONCURRENCY)
    patiently(watch.start)
    _watches.append(watch)
    end_process_after(_told_to_end, seconds=settings.RELAY_SHUTDOWN_GRACE_S + LAST_SECONDS)
    end_process_after(_left, seconds=LAST_SECONDS)
    lend_connection()
    _collect_rarely()


def _collect_rarely() -> None:
    """What is loaded by now stays, and items leave few cycles: looking through all of it again and again took a fifth
    of the processor's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@worker_shutting_down.connect
def take_nothing_new(**_: Any) -> None:
    _told_to_end.set()
    for watch in _watches:
        watch.take_nothing_new()


@worker_shutdown.connect
def leave(**_: Any) -> None:
    """Nothing runs any more, so that there is no grace to wait for."""
    _left.set()
    finish_publishing()
    for watch in _watches:
        try:
            watch.leave()
        except AWAY:
            logger.warning("the worker row stays; the sweeper removes it")
