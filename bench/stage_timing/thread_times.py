"""Processor time of this process by kind of thread."""

from __future__ import annotations

import threading

import psutil

ITEMS, CELERY, PUBLISHER, OTHERS = "items", "celery", "publisher", "others"
_KINDS_BY_NAME = {"ThreadPoolExecutor": ITEMS, "MainThread": CELERY, "publisher": PUBLISHER}


def cpu_seconds_by_kind() -> dict[str, float]:
    """Processor seconds of the threads that live, by kind. The system counts them in hundredths of a second."""
    kinds = {thread.native_id: _kind(thread.name) for thread in threading.enumerate()}
    seconds = dict.fromkeys((ITEMS, CELERY, PUBLISHER, OTHERS), 0.0)
    for thread in psutil.Process().threads():
        seconds[kinds.get(thread.id, OTHERS)] += thread.user_time + thread.system_time
    return seconds


def _kind(name: str) -> str:
    return next((kind for start, kind in _KINDS_BY_NAME.items() if name.startswith(start)), OTHERS)
