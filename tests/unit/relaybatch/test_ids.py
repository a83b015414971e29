"""Ids are UUIDs of version 7 that sort by their creation."""

from __future__ import annotations

import time
import uuid

import pytest

from relaybatch.ids import uuid7, uuid7_run, uuid7_run_hex


def milliseconds_of(identifier: uuid.UUID) -> int:
    return identifier.int >> 80


def test_an_id_has_version_variant_and_the_current_time() -> None:
    before = time.time_ns() // 1_000_000
    identifier = uuid7()
    assert (identifier.version, identifier.variant) == (7, uuid.RFC_4122)
    assert before <= milliseconds_of(identifier) <= time.time_ns() // 1_000_000


def test_a_run_is_ascending_unique_and_of_one_millisecond() -> None:
    run = list(uuid7_run(50_000))
    assert run == sorted(set(run))
    assert {(identifier.version, identifier.variant) for identifier in run} == {(7, uuid.RFC_4122)}
    assert len({milliseconds_of(identifier) for identifier in run}) == 1


def test_a_run_in_hexadecimal_digits_is_of_such_ids() -> None:
    run = list(uuid7_run_hex(3))
    first = uuid.UUID(hex=run[0])
    assert first.version == 7
    assert run == [uuid.UUID(int=first.int + number).hex for number in range(3)]


def test_two_runs_at_the_same_time_have_no_id_in_common() -> None:
    assert not set(uuid7_run(1000)) & set(uuid7_run(1000))


def test_a_run_is_at_most_as_long_as_its_counter() -> None:
    with pytest.raises(ValueError, match="at most 1048576"):
        uuid7_run((1 << 20) + 1)
