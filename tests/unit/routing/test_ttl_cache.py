from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from routing.ttl_cache import TtlCache


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Answers 1, 2, 3 … in turn."""

    def __init__(self) -> None:
        self.loads = 0

    def __call__(self) -> int:
        self.loads += 1
        return self.loads


def test_an_answer_is_kept_until_its_time_is_over() -> None:
    clock, source = Clock(), Source()
    cache = TtlCache[str, int](seconds=0.5, clock=clock)
    assert cache.get("a", source) == 1
    clock.now += 0.49
    assert cache.get("a", source) == 1
    clock.now += 0.01
    assert cache.get("a", source) == 2


def test_the_time_counts_from_before_the_load() -> None:
    clock = Clock()
    cache = TtlCache[str, int](seconds=0.5, clock=clock)

    def slow() -> int:
        clock.now += 0.4
        return 1

    assert cache.get("a", slow) == 1
    clock.now += 0.1
    assert cache.get("a", lambda: 2) == 2


def test_nothing_found_is_an_answer_too() -> None:
    cache = TtlCache[str, str | None](clock=Clock())
    assert cache.get("a", lambda: None) is None
    assert cache.get("a", lambda: "found") is None


def test_an_error_is_not_kept() -> None:
    cache = TtlCache[str, int](clock=Clock())
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 7) == 7


def test_the_oldest_answer_makes_room() -> None:
    source = Source()
    cache = TtlCache[int, int](size=2, clock=Clock())
    for key in (1, 2, 3):
        cache.get(key, source)
    assert cache.get(3, source) == 3
    assert cache.get(1, source) == 4


def test_threads_that_ask_at_once_share_one_load() -> None:
    cache, source = TtlCache[str, int](clock=Clock()), Source()
    together, loading, go_on = threading.Barrier(8), threading.Event(), threading.Event()

    def load() -> int:
        loading.set()
        assert go_on.wait(10)
        return source()

    def ask() -> int:
        together.wait(10)
        return cache.get("a", load)

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(ask) for _ in range(8)]
        assert loading.wait(10)
        go_on.set()
        assert [answer.result(10) for answer in answers] == [1] * 8
    assert source.loads == 1


def test_those_who_waited_for_a_failed_load_see_its_error() -> None:
    cache = TtlCache[str, int]()
    loading, asking, fail = threading.Event(), threading.Event(), threading.Event()

    def load() -> int:
        loading.set()
        assert fail.wait(10)
        raise LookupError("gone")

    def ask() -> int:
        asking.set()
        return cache.get("a", lambda: 5)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, "a", load)
        assert loading.wait(10)
        second = pool.submit(ask)
        assert asking.wait(10)
        fail.set()
        with pytest.raises(LookupError):
            first.result(10)
        # It joined the failing load, or came just after it and loaded for itself: it never hangs.
        assert isinstance(second.exception(10), LookupError | None)


def renew(cache: TtlCache[str, int]) -> int:
    """Returns how many values were renewed."""
    due = cache.due_renewals(min_age_seconds=0.25)
    for one in due:
        one()
    return len(due)


def test_a_value_in_use_is_renewed_before_it_is_too_old() -> None:
    clock, source = Clock(), Source()
    cache = TtlCache[str, int](seconds=0.5, clock=clock)
    for expected in (1, 2, 3):
        assert [cache.get("a", source), cache.get("a", source)] == [expected] * 2
        clock.now += 0.24
        assert renew(cache) == 0
        clock.now += 0.01
        assert renew(cache) == 1
    assert source.loads == 4


def test_a_value_that_nobody_got_since_its_load_is_not_renewed() -> None:
    clock, source = Clock(), Source()
    cache = TtlCache[str, int](seconds=0.5, clock=clock)
    cache.get("a", source)
    clock.now += 0.3
    assert renew(cache) == 0
    cache.get("a", source)
    assert [renew(cache), renew(cache)] == [1, 0]
    clock.now += 0.3
    assert renew(cache) == 0


def test_a_value_that_is_too_old_is_not_renewed() -> None:
    clock, source = Clock(), Source()
    cache = TtlCache[str, int](seconds=0.5, clock=clock)
    assert [cache.get("a", source), cache.get("a", source)] == [1, 1]
    clock.now += 0.5
    assert renew(cache) == 0


def test_the_time_of_a_renewed_value_counts_from_before_its_load() -> None:
    clock = Clock()
    cache = TtlCache[str, int](seconds=0.5, clock=clock)

    def slow(last: int) -> int:
        clock.now += 0.2
        return last + 1

    def get() -> int:
        return cache.get("a", lambda: 1, renew=slow)

    assert [get(), get()] == [1, 1]
    clock.now += 0.25
    renew(cache)
    clock.now += 0.29
    assert get() == 2
    clock.now += 0.01
    assert get() == 1


def test_a_renewal_that_fails_leaves_the_value_for_its_time() -> None:
    clock, source = Clock(), Source()
    cache = TtlCache[str, int](seconds=0.5, clock=clock)

    def fail(_: int) -> int:
        raise LookupError("gone")

    assert [cache.get("a", source, renew=fail) for _ in range(2)] == [1, 1]
    clock.now += 0.3
    with pytest.raises(LookupError):
        renew(cache)
    clock.now += 0.19
    assert cache.get("a", source) == 1
    clock.now += 0.01
    assert cache.get("a", source) == 2


@pytest.mark.parametrize("meanwhile", ["cleared", "loaded"])
def test_a_renewal_does_not_take_the_place_of_what_happened_since_it_began(meanwhile: str) -> None:
    clock = Clock()
    cache = TtlCache[str, str](seconds=0.5, clock=clock)

    def overtaken(_: str) -> str:
        cache.clear()
        if meanwhile == "loaded":
            cache.get("a", lambda: "later")
        return "renewed"

    for _ in range(2):
        cache.get("a", lambda: "first", renew=overtaken)
    clock.now += 0.3
    for one in cache.due_renewals(min_age_seconds=0.25):
        one()
    assert cache.get("a", lambda: "anew") == ("later" if meanwhile == "loaded" else "anew")


def test_what_is_loaded_while_the_cache_is_cleared_is_not_kept() -> None:
    cache = TtlCache[str, str](clock=Clock())

    def load() -> str:
        cache.clear()
        return "before"

    assert cache.get("a", load) == "before"
    assert cache.get("a", lambda: "after") == "after"
