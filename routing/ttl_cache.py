"""A cache in the process's memory with a short time to live: a burst of items reads the database once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")


@dataclass(eq=False, slots=True)
class _Entry(Generic[V]):
    """`renew`: makes the next value of this one. `is_used`: somebody got the value after it was loaded."""

    started_at: float
    renew: Callable[[V], V]
    future: Future[V] = field(default_factory=Future)
    value: V | None = None
    is_loaded: bool = False
    is_used: bool = False


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

    def get(self, key: K, load: Callable[[], V], *, renew: Callable[[V], V] | None = None) -> V:
        """The cached value, or what `load` returns. `renew`: renews the last value; else `load` does."""
        requested_at = self._clock()
        while True:
            # Without the lock: reading a dict is one step, and nothing takes a loaded value away from its entry.
            entry = self._entries.get(key)
            if entry is None or not entry.is_loaded or not self._is_fresh(entry, requested_at):
                entry, is_loader = self._get_or_start(key, requested_at, renew or (lambda _: load()))
                if is_loader:
                    return self._load(key, entry, load)
                entry.future.result()
            if self._is_fresh(entry, requested_at):
                entry.is_used = True
                return entry.value  # type: ignore[return-value]  # V, since it is loaded

    def due_renewals(self, *, min_age_seconds: float) -> list[Callable[[], None]]:
        """What loads anew the values that are this old, not too old yet, and were used since their load.

        A renewal that raises leaves the value as it is.
        """
        with self._lock:
            now = self._clock()
            return [
                partial(self._renew, key, entry)
                for key, entry in self._entries.items()
                if entry.is_used and min_age_seconds <= now - entry.started_at < self._seconds
            ]

    def clear(self) -> None:
        """Forget all values, and those that are being loaded: only who waits for them already gets them."""
        with self._lock:
            self._entries.clear()

    def _get_or_start(self, key: K, requested_at: float, renew: Callable[[V], V]) -> tuple[_Entry[V], bool]:
        with self._lock:
            entry: _Entry[V] | None = self._entries.get(key)
            if entry is not None and (not entry.future.done() or self._is_fresh(entry, requested_at)):
                return entry, False
            entry = _Entry(self._clock(), renew)
            self._insert(key, entry)
            if len(self._entries) > self._size:
                del self._entries[next(iter(self._entries))]
            return entry, True

    def _insert(self, key: K, entry: _Entry[V]) -> None:
        # Removed before it is inserted again, so that the first key of the dict is always the oldest.
        self._entries.pop(key, None)
        self._entries[key] = entry

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
        _set_value(entry, value)
        return value

    def _renew(self, key: K, entry: _Entry[V]) -> None:
        if self._entries.get(key) is not entry:
            return  # loaded or cleared while others were renewed
        started_at = self._clock()
        renewed = _Entry(started_at, entry.renew)
        _set_value(renewed, entry.renew(entry.future.result()))
        with self._lock:
            # Not in the place of a value that was loaded since then, or cleared.
            if self._entries.get(key) is entry:
                self._insert(key, renewed)


def _set_value(entry: _Entry[V], value: V) -> None:
    entry.value, entry.is_loaded = value, True
    entry.future.set_result(value)
