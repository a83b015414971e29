"""Answers kept in the process's memory for a moment, so that a burst of items asks the database once."""

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
class _Answer(Generic[V]):
    began_at: float
    future: Future[V] = field(default_factory=Future)


class Fresh(Generic[K, V]):
    """A cache whose answers are at most `seconds` old, counted from before their load began.

    Threads that ask for one key at the same time share one load. "Not there" (None) is an answer too; an
    error is handed to those who waited for it, and not kept. At most `size` answers are held.
    """

    def __init__(
        self, *, seconds: float = 0.5, size: int = 1024, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[K, _Answer[V]] = {}

    def get(self, key: K, load: Callable[[], V]) -> V:
        asked_at = self._clock()
        while True:
            answer, mine = self._join(key, asked_at)
            if mine:
                return self._load(key, answer, load)
            value = answer.future.result()
            if self._usable(answer, asked_at):
                return value

    def clear(self) -> None:
        with self._lock:
            self._answers.clear()

    def _join(self, key: K, asked_at: float) -> tuple[_Answer[V], bool]:
        with self._lock:
            answer: _Answer[V] | None = self._answers.get(key)
            if answer is not None and (not answer.future.done() or self._usable(answer, asked_at)):
                return answer, False
            answer = _Answer(self._clock())
            self._answers.pop(key, None)
            self._answers[key] = answer
            if len(self._answers) > self._size:
                del self._answers[next(iter(self._answers))]
            return answer, True

    def _usable(self, answer: _Answer[V], asked_at: float) -> bool:
        # A slow load that began after the question is as good as one's own, however long it took.
        return answer.began_at >= asked_at or self._clock() - answer.began_at < self._seconds

    def _load(self, key: K, answer: _Answer[V], load: Callable[[], V]) -> V:
        try:
            value = load()
        except BaseException as error:
            with self._lock:
                if self._answers.get(key) is answer:
                    del self._answers[key]
            answer.future.set_exception(error)
            raise
        answer.future.set_result(value)
        return value
