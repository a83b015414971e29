"""The worker row of this process: its heartbeat says that the items it claimed are still run."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from django.db import connection

if TYPE_CHECKING:
    import uuid

HEARTBEATS_PER_LOST_TIMEOUT = 6

# An upsert: a process that was declared lost and runs again is alive again.
_HEARTBEAT = """
INSERT INTO batches_worker (id, host, pid, slots, started_at, seen_at)
VALUES (%s, %s, %s, %s, clock_timestamp(), clock_timestamp())
ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at
"""
_DELETE_WORKER = "DELETE FROM batches_worker WHERE id = %s"


def send_heartbeat(worker_id: uuid.UUID, *, slots: int) -> None:
    """Set the worker row's `seen_at` to now; inserts the row if it is missing."""
    with connection.cursor() as cursor:
        cursor.execute(_HEARTBEAT, [worker_id, socket.gethostname(), os.getpid(), slots])


def delete_worker(worker_id: uuid.UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_WORKER, [worker_id])
