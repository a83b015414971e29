"""The table in the docstring of `routing.gate.denials`."""

from __future__ import annotations

import pytest

from routing.calls.call import HostKeyRejection, Postponement
from routing.calls.waiting_reason import WaitingReason
from routing.gate.denials import (
    MAX_WAIT_SECONDS,
    denial_without_redis,
    host_key_rejection_without_redis,
    parse_denial,
    parse_host_key_rejection,
)


@pytest.mark.parametrize(
    ("result", "code", "postponement"),
    [
        ([b"limit", 1500, 0], "rate_limited", Postponement(WaitingReason.RATE_LIMIT, 1.5, whole_policy=True)),
        ([b"no_key", 2000, b"limit"], "rate_limited", Postponement(WaitingReason.RATE_LIMIT, 2.0)),
        (
            [b"no_key", 60_000, b"unauthorized"],
            "no_healthy_keys",
            Postponement(WaitingReason.BREAKER_OPEN, 60.0),
        ),
        (
            [b"no_key", 2000, b"error"],
            "no_healthy_keys",
            Postponement(WaitingReason.BREAKER_OPEN, 2.0, must_wait=True),
        ),
    ],
)
def test_a_denial(result: list[object], code: str, postponement: Postponement) -> None:
    denied = parse_denial(result)
    assert (denied.failure.code, denied.postponement) == (code, postponement)


def test_a_denial_by_concurrency_waits_a_random_time_and_names_the_limit() -> None:
    waits = {parse_denial([b"limit", 250, 3]).postponement for _ in range(50)}
    assert {(wait.reason, wait.concurrency_limit, wait.whole_policy) for wait in waits} == {
        ("rate_limit", 3, False)
    }
    assert all(0.2 <= wait.seconds <= 0.5 for wait in waits)
    assert len(waits) > 1


def test_no_wait_is_longer_than_a_date_can_say() -> None:
    assert parse_denial([b"limit", 10**17, 0]).postponement.seconds == MAX_WAIT_SECONDS


def test_without_redis_every_call_waits_2_to_4_seconds() -> None:
    denied = denial_without_redis()
    assert denied.failure.code == "no_healthy_keys"
    assert (denied.postponement.reason, denied.postponement.must_wait) == ("redis_away", True)
    assert 2 <= denied.postponement.seconds <= 4


@pytest.mark.parametrize(
    ("result", "rejection"),
    [
        ([b"no_key", 1500, 1, 0], HostKeyRejection(seconds=1.5, has_other_keys=True)),
        ([b"released", 0, 0, 2000], HostKeyRejection(seconds=0.0, has_other_keys=False)),
    ],
)
def test_a_host_key_rejection(result: list[object], rejection: HostKeyRejection) -> None:
    assert parse_host_key_rejection(result) == rejection


@pytest.mark.parametrize("has_other_keys", [True, False])
def test_a_host_key_rejection_without_redis_waits_2_to_4_seconds(has_other_keys: bool) -> None:
    rejection = host_key_rejection_without_redis(has_other_keys=has_other_keys)
    assert rejection.has_other_keys is has_other_keys
    assert 2 <= rejection.seconds <= 4
