"""A cache in the process's memory with a short time to live: a burst of items reads the database once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    started_at: float
    future: Future[V] = field(default_factory=Future)


class TtlCache(Generic[K, V]):
    """A cache of at most `size` values, which are at most `seconds` old, counted from before their load started.

    Threads that get the same key at the same time share one load. None is cached like any value. An exception is raised
    in the threads that waited for it, and is not cached.
    """

    def __init__(
        self, *, seconds: float = 0.5, size: int = 1024, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[K, _Entry[V]] = {}

    def get(self, key: K, load: Callable[[], V]) -> V:
        requested_at = self._clock()
        while True:
            entry, is_loader = self._get_or_start(key, requested_at)
            if is_loader:
                return self._load(key, entry, load)
            value = entry.future.result()
            if self._is_fresh(entry, requested_at):
                return value

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def _get_or_start(self, key: K, requested_at: float) -> tuple[_Entry[V], bool]:
        with self._lock:
            entry: _Entry[V] | None = self._entries.get(key)
            if entry is not None and (not entry.future.done() or self._is_fresh(entry, requested_at)):
                return entry, False
            entry = _Entry(self._clock())
            # Removed before it is inserted again, so that the first key of the dict is always the oldest.
            self._entries.pop(key, None)
            self._entries[key] = entry
            if len(self._entries) > self._size:
                del self._entries[next(iter(self._entries))]
            return entry, True

    def _is_fresh(self, entry: _Entry[V], requested_at: float) -> bool:
        # A load that started after the request is fresh enough, however long it took.
        return entry.started_at >= requested_at or self._clock() - entry.started_at < self._seconds

    def _load(self, key: K, entry: _Entry[V], load: Callable[[], V]) -> V:
        try:
            value = load()
        except BaseException as error:
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
            entry.future.set_exception(error)
            raise
        entry.future.set_result(value)
        return value
