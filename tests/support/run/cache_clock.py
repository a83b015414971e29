"""The clock of the caches of half a second, for tests that must not depend on how fast they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from routing.cache_renewal import CACHES, MIN_AGE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from routing.ttl_cache import TtlCache


class CacheClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[CacheClock]:
    """The caches are empty before and after, since what they hold is dated by this clock."""
    stopped = CacheClock()
    for cache in CACHES:
        cache.clear()
        monkeypatch.setattr(cache, "_clock", stopped)
    yield stopped
    for cache in CACHES:
        cache.clear()


def renewals(cache: TtlCache[Any, Any]) -> list[Callable[[], None]]:
    return cache.due_renewals(min_age_seconds=MIN_AGE_SECONDS)
