"""Group commit: what several threads want to write at the same moment is written in one transaction.

Natural batching: a thread that comes while nothing is being written writes at once, alone, so that nobody waits for
company. Those that come meanwhile are written together by the first of them, as soon as that write has ended.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def _unwritten() -> Exception:
    return psycopg.InterfaceError("the thread that wrote for the group was ended")


@dataclass(slots=True, eq=False)
class _Write(Generic[T, R]):
    """`wake`: released when the write has ended, or when its thread is to write for the group."""

    value: T
    wake: threading.Lock = field(default_factory=_locked)
    is_done: bool = False
    results: list[R] = field(default_factory=list)
    error: Exception | None = None


class GroupCommit(Generic[T, R]):
    """`write` takes the values of a group, at most `max_size`, and returns a result for each, in order.

    An exception that it raises is raised in every thread of the group: what it means for one value alone, each thread
    has to find out by itself. When the thread that writes is ended, the others get psycopg's InterfaceError, as for a
    connection that broke.
    """

    def __init__(self, write: Callable[[Sequence[T]], Sequence[R]], *, max_size: int = 64) -> None:
        self._write = write
        self._max_size = max_size
        self._lock = threading.Lock()
        self._waiting: list[_Write[T, R]] = []
        self._is_writing = False

    def __call__(self, value: T) -> R:
        write: _Write[T, R] = _Write(value)
        with self._lock:
            self._waiting.append(write)
            is_first, self._is_writing = not self._is_writing, True
        if not is_first:
            write.wake.acquire()
        if not write.is_done:
            self._write_group(write)
        if write.error is not None:
            raise write.error
        return write.results[0]

    def _write_group(self, own: _Write[T, R]) -> None:
        with self._lock:
            group, self._waiting = self._waiting[: self._max_size], self._waiting[self._max_size :]
        try:
            for write, result in zip(group, self._write([write.value for write in group]), strict=True):
                write.results.append(result)
        except BaseException as error:
            for write in group:
                write.error = error if isinstance(error, Exception) else _unwritten()
            if not isinstance(error, Exception):
                raise
        finally:
            self._hand_over()
            for write in group:
                write.is_done = True
                if write is not own:
                    write.wake.release()

    def _hand_over(self) -> None:
        """Wake the first thread that waits, to write the next group."""
        with self._lock:
            self._is_writing = bool(self._waiting)
            if self._waiting:
                self._waiting[0].wake.release()
