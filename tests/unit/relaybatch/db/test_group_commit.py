"""Group commit: nobody waits for company, and who comes while others write is written with them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from relaybatch.db.group_commit import GroupCommit
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT_SECONDS = 10


class Writer:
    """Writes groups, each when it is let go; results are the values times ten."""

    def __init__(self, *, max_size: int = 64) -> None:
        self.groups: list[list[int]] = []
        self.may_write = threading.Event()
        self.error: Exception | None = None
        self.commit: GroupCommit[int, int] = GroupCommit(self.write, max_size=max_size)

    def write(self, values: Sequence[int]) -> list[int]:
        self.groups.append(list(values))
        assert self.may_write.wait(TIMEOUT_SECONDS)
        if self.error:
            raise self.error
        return [value * 10 for value in values]


def test_who_comes_alone_writes_at_once_and_alone() -> None:
    writer = Writer()
    writer.may_write.set()
    assert [writer.commit(value) for value in (1, 2)] == [10, 20]
    assert writer.groups == [[1], [2]]


@pytest.mark.parametrize(("max_size", "sizes"), [(64, [1, 7]), (3, [1, 3, 3, 1])])
def test_those_that_come_while_one_writes_are_written_together(max_size: int, sizes: list[int]) -> None:
    writer = Writer(max_size=max_size)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(writer.commit, 0)
        wait_until(lambda: len(writer.groups) == 1, lambda: f"{writer.groups}")
        others = [threads.submit(writer.commit, value) for value in range(1, 8)]
        wait_until(lambda: len(writer.commit._waiting) == 7, lambda: f"{writer.groups}")
        writer.may_write.set()
        assert [call.result(TIMEOUT_SECONDS) for call in (first, *others)] == list(range(0, 80, 10))
    assert [len(group) for group in writer.groups] == sizes


def test_an_error_reaches_every_thread_of_the_group_and_the_next_group_is_written() -> None:
    writer = Writer()
    writer.error = RuntimeError("refused")
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(writer.commit, 0)
        wait_until(lambda: len(writer.groups) == 1, lambda: f"{writer.groups}")
        others = [threads.submit(writer.commit, value) for value in (1, 2)]
        wait_until(lambda: len(writer.commit._waiting) == 2, lambda: f"{writer.groups}")
        writer.may_write.set()
        errors = [call.exception(TIMEOUT_SECONDS) for call in (first, *others)]
    assert [str(error) for error in errors] == ["refused"] * 3
    writer.error = None
    assert writer.commit(5) == 50


def test_a_thread_that_is_ended_while_it_writes_leaves_the_others_a_broken_connection() -> None:
    """Which they retry: what they hold is not lost with it."""
    writer = Writer()
    writer.error = SystemExit()  # type: ignore[assignment]
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(writer.commit, 0)
        wait_until(lambda: len(writer.groups) == 1, lambda: f"{writer.groups}")
        others = [threads.submit(writer.commit, value) for value in (1, 2)]
        wait_until(lambda: len(writer.commit._waiting) == 2, lambda: f"{writer.groups}")
        writer.may_write.set()
        errors = [call.exception(TIMEOUT_SECONDS) for call in (first, *others)]
    assert sorted(type(error).__name__ for error in errors) == ["InterfaceError", "SystemExit", "SystemExit"]
    writer.error = None
    assert writer.commit(5) == 50


def test_too_few_results_are_an_error_of_the_whole_group() -> None:
    short: GroupCommit[int, int] = GroupCommit(lambda _values: [])
    with pytest.raises(ValueError, match="shorter"):
        short(1)


def test_under_load_every_thread_gets_its_own_result() -> None:
    writer = Writer()
    writer.may_write.set()
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(writer.commit, range(2_000))) == [value * 10 for value in range(2_000)]
    assert sorted(value for group in writer.groups for value in group) == list(range(2_000))
