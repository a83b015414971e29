"""Rate limits: what each strategy lets through, exactly, at the borders of its windows too."""

from __future__ import annotations

import functools

import pytest
from django.conf import settings

from routing.calls.call import Tokens
from routing.gate.breaker_signals import OK
from routing.gate.denials import AdmissionDenied
from routing.gate.liveness import Liveness, liveness
from routing.gate.redis import client
from routing.resolution.gate_plan import PREFIX
from tests.support.calls.admissions import ERROR, START_MS, Gate, rule
from tests.support.rows.gate_state import gate_keys
from tests.support.run.races import run_concurrently

STRATEGIES = ("fixed-window", "sliding-window", "token-bucket")
pytestmark = pytest.mark.django_db  # `run_concurrently` gives each thread a connection


def requests(amount: int, strategy: str, *, window: int = 10) -> Gate:
    return Gate(rules=(rule("requests", amount, window, strategy),))


def passed(gate: Gate, calls: int) -> int:
    return sum(gate.passes() for _ in range(calls))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_200_calls_at_the_same_moment_exactly_as_many_pass_as_the_limit_says(strategy: str) -> None:
    gate = requests(20, strategy, window=3600)
    gate.now_ms = 0
    assert sum(run_concurrently([gate.passes] * 40) + [gate.passes() for _ in range(160)]) == 20


def test_a_fixed_window_begins_anew_with_each_multiple_of_its_length() -> None:
    gate = requests(3, "fixed-window")
    gate.at(9.9)
    assert passed(gate, 5) == 3
    assert gate.wait_seconds() == pytest.approx(0.1)
    gate.at(9.999)
    assert passed(gate, 1) == 0
    gate.at(10)
    assert passed(gate, 5) == 3
    assert gate.wait_seconds() == 10


def test_no_sliding_window_holds_more_than_the_amount_and_each_is_filled() -> None:
    gate = requests(3, "sliding-window")
    for seconds, expected in [(0, 1), (4, 1), (9.999, 1), (9.999, 0), (10, 1), (10.001, 0), (13.999, 0)]:
        gate.at(seconds)
        assert passed(gate, 1) == expected, seconds
    gate.at(14)
    assert passed(gate, 2) == 1
    gate.at(19.998)
    assert passed(gate, 1) == 0
    gate.at(30)
    assert passed(gate, 9) == 3


def test_who_is_refused_by_a_sliding_window_comes_back_when_a_tenth_of_it_is_free() -> None:
    gate = requests(20, "sliding-window")
    for number in range(20):
        gate.at(number / 10)
        gate.call()
    gate.at(2)
    assert gate.wait_seconds() == pytest.approx(8.1), "two of twenty, the second was at 0.1"
    small = requests(2, "sliding-window")
    small.call()
    small.advance(1)
    small.call()
    assert small.wait_seconds() == 9


def test_a_bucket_holds_its_amount_and_refills_evenly() -> None:
    gate = requests(20, "token-bucket")
    assert passed(gate, 30) == 20
    gate.advance(0.499)
    assert passed(gate, 1) == 0
    gate.advance(0.001)
    assert passed(gate, 2) == 1
    assert gate.wait_seconds() == 1, "two of twenty"
    for _ in range(1000):
        gate.advance(0.5)
        assert passed(gate, 2) == 1
    gate.advance(3600)
    assert passed(gate, 30) == 20


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_call_that_was_not_sent_is_given_back(strategy: str) -> None:
    gate = requests(2, strategy)
    gate.call()
    held = gate.acquire()
    assert not gate.passes()
    held.give_back()
    assert passed(gate, 3) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_given_back_late_frees_nothing_in_a_later_window(strategy: str) -> None:
    gate = requests(2, strategy)
    held = gate.acquire()
    gate.advance(100)
    assert passed(gate, 3) == 2
    held.give_back()
    assert passed(gate, 1) == (1 if strategy == "token-bucket" else 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_tokens_are_charged_after_the_answer_and_refuse_once_they_are_over(strategy: str) -> None:
    gate = Gate(rules=(rule("tokens", 100, 10, strategy),))
    used = Tokens(input=30, output=10, cache_read=15, cache_write=5, reasoning=9)
    gate.call(tokens=used)
    assert gate.passes(), "60 of 100 are used"
    gate.call(tokens=used)
    assert not gate.passes(), "120 of 100"
    assert 0 < gate.wait_seconds() <= 10
    gate.advance(10)
    assert gate.passes()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_answer_over_the_whole_limit_is_paid_off_by_waiting(strategy: str) -> None:
    gate = Gate(rules=(rule("tokens", 100, 10, strategy),))
    gate.call(tokens=Tokens(input=0, output=350))
    gate.advance(gate.wait_seconds())
    assert gate.passes()
    assert gate.now_ms - START_MS == {"token-bucket": 26_000}.get(strategy, 10_000)


@pytest.mark.parametrize(
    ("meter", "counted"),
    [
        ("tokens", 110),
        ("tokens.input", 10),
        ("tokens.output", 20),
        ("tokens.cache_read", 30),
        ("tokens.cache_write", 50),
        ("tokens.reasoning", 7),
        ("tokens.cache_write_5m", 3),
        ("tokens.cache_write_1h", 4),
    ],
)
def test_each_meter_counts_its_own_tokens(meter: str, counted: int) -> None:
    used = Tokens(10, 20, 30, 50, 7, 3, 4)
    full = Gate(rules=(rule(meter, counted, 10, "fixed-window"),))
    full.call(tokens=used)
    assert not full.passes()
    roomy = Gate(rules=(rule(meter, counted + 1, 10, "fixed-window"),))
    roomy.call(tokens=used)
    assert roomy.passes()


def test_tokens_that_nobody_knows_charge_nothing() -> None:
    gate = Gate(rules=(rule("tokens", 1, 10, "sliding-window"),))
    gate.call(tokens=None)
    assert gate.passes()


def test_tokens_leave_a_sliding_window_with_the_call_that_used_them() -> None:
    gate = Gate(rules=(rule("tokens.output", 100, 10, "sliding-window"),))
    for seconds, used in ((0, 60), (3, 39), (6, 60)):
        gate.at(seconds)
        gate.call(tokens=Tokens(input=0, output=used))
    assert gate.wait_seconds() == 7, "without the first two of the three, a tenth is free and more"
    gate.at(9.999)
    assert not gate.passes()
    gate.at(10)
    assert gate.passes(), "99 of 100"


def test_all_rules_are_reserved_or_none() -> None:
    gate = Gate(
        rules=(
            rule("requests", 100, 10, "token-bucket"),
            rule("requests", 100, 10, "sliding-window"),
            rule("requests", 1, 20, "fixed-window"),
            rule("concurrency", 2),
        ),
    )
    gate.call()
    before = {key: client().dump(key) for key in gate_keys()}
    assert gate.wait_seconds() == 20
    assert {key: client().dump(key) for key in gate_keys()} == before


def test_the_longest_wait_of_all_rules_counts() -> None:
    gate = Gate(
        rules=(rule("requests", 1, 5, "fixed-window"), rule("requests", 1, 60, "fixed-window")),
    )
    gate.call()
    refused = gate.denial()
    assert refused.postponement.seconds == 60
    assert refused.postponement.whole_policy
    assert refused.failure.code == "rate_limited"
    assert "rate limit" in refused.failure.message


def test_of_two_rules_with_one_counter_the_stricter_holds() -> None:
    gate = Gate(rules=(rule("requests", 2, 10, "fixed-window"), rule("requests", 5, 10, "fixed-window")))
    assert passed(gate, 5) == 2


def test_a_changed_amount_holds_at_once_for_what_was_counted_before() -> None:
    gate = requests(5, "sliding-window")
    assert passed(gate, 5) == 5
    gate.rules = (rule("requests", 7, 10, "sliding-window"),)
    assert passed(gate, 5) == 2
    gate.rules = (rule("requests", 3, 10, "sliding-window"),)
    assert not gate.passes()


def test_a_clock_that_goes_back_admits_no_more_calls() -> None:
    for strategy in STRATEGIES:
        gate = requests(2, strategy)
        gate.advance(5)
        assert passed(gate, 3) == 2
        gate.at(4)
        assert not gate.passes(), strategy


# Concurrency


def test_no_more_calls_run_at_once_than_the_limit_says() -> None:
    gate = Gate(rules=(rule("concurrency", 3),), now_ms=0)
    running = [gate.acquire() for _ in range(3)]
    refused = gate.denial()
    assert refused.postponement.concurrency_limit == 3
    assert 0.2 <= refused.postponement.seconds <= 0.5
    running[1].release()
    gate.acquire()
    assert not gate.passes()


def test_200_calls_at_once_take_no_place_twice() -> None:
    gate = Gate(rules=(rule("concurrency", 5),), now_ms=0)

    def enter_and_stay() -> bool:
        try:
            gate.acquire()
        except AdmissionDenied:
            return False
        return True

    assert sum(run_concurrently([enter_and_stay] * 40)) == 5


def test_a_place_comes_back_when_its_process_is_gone() -> None:
    gate = Gate(rules=(rule("concurrency", 1),), now_ms=0)
    held = gate.acquire()
    assert not gate.passes()
    client().delete(f"{PREFIX}liveness:{liveness.id}")
    assert gate.passes()
    held.release()


def test_a_liveness_key_lasts_as_long_as_the_setting_says() -> None:
    process = Liveness()
    process.heartbeat()
    left = client().pttl(f"{PREFIX}liveness:{process.id}")
    assert 0 < left <= settings.RELAY_WORKER_LOST_S * 1000


def test_a_place_comes_back_after_the_deadline_of_its_call_at_the_latest() -> None:
    gate = Gate(rules=(rule("concurrency", 1),))
    gate.acquire()
    gate.advance(119)
    assert not gate.passes()
    gate.advance(2)
    assert gate.passes()


# Host keys' own limits


def test_a_host_key_whose_own_limit_is_spent_is_passed_over() -> None:
    gate = Gate(keys=("one", "two"), key_rules={"one": (rule("requests", 2, 10, "sliding-window"),)})
    assert [gate.call() for _ in range(4)] == ["one", "one", "two", "two"]
    gate.advance(10)
    assert gate.call() == "one"


def test_when_every_host_keys_own_limit_is_spent_the_earliest_says_when_to_come_back() -> None:
    gate = Gate(
        keys=("one", "two"),
        key_rules={
            "one": (rule("requests", 1, 60, "fixed-window"),),
            "two": (rule("requests", 1, 30, "fixed-window"),),
        },
        rules=(rule("requests", 100, 10, "sliding-window"),),
    )
    assert [gate.call(), gate.call()] == ["one", "two"]
    refused = gate.denial()
    assert refused.failure.code == "rate_limited"
    assert (refused.postponement.reason, refused.postponement.seconds) == ("rate_limit", 30)
    assert not refused.postponement.must_wait
    assert not refused.postponement.whole_policy
    gate.advance(30)
    assert gate.call() == "two"


def test_a_refused_call_reserves_nothing_of_the_host_key() -> None:
    gate = Gate(
        key_rules={"one": (rule("requests", 2, 10, "sliding-window"),)},
        rules=(rule("requests", 1, 5, "fixed-window"),),
    )
    assert [gate.passes() for _ in range(5)] == [True, False, False, False, False]
    gate.advance(5)
    assert gate.passes()


def test_two_policies_share_the_limit_of_a_host_key_and_not_each_others() -> None:
    one = Gate(key_rules={"one": (rule("requests", 1, 10, "sliding-window"),)})
    assert [one.passes(), one.passes()] == [True, False]
    assert Gate(rules=(rule("requests", 1, 10, "sliding-window"),)).passes()


def test_moving_to_another_key_releases_the_place_at_the_first() -> None:
    gate = Gate(
        keys=("one", "two"),
        now_ms=0,
        key_rules={"one": (rule("concurrency", 1),), "two": (rule("concurrency", 1),)},
    )
    first = gate.acquire()
    assert first.key == "one"
    assert first.next_key(OK) == "two"
    second = gate.acquire()
    assert second.key == "one"
    first.release()
    second.release()


def test_nothing_is_kept_for_ever() -> None:
    every = (
        *(rule(meter, 100, 10, strategy) for meter in ("requests", "tokens") for strategy in STRATEGIES),
        rule("concurrency", 5),
    )
    for selection in ("round-robin", "least-recently-used"):
        gate = Gate(keys=("one", "two"), rules=every, key_rules={"one": every}, selection=selection)
        gate.call(tokens=Tokens(1, 1))
        gate.acquire()
        gate.now_ms = 0
        gate.call(ERROR, tokens=Tokens(1, 1))
    assert len(gate_keys()) > 20
    assert {key: client().pttl(key) for key in gate_keys() if client().pttl(key) < 0} == {}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_threads_that_charge_lose_no_tokens(strategy: str) -> None:
    gate = Gate(rules=(rule("tokens", 40, 3600, strategy),))
    running = [gate.acquire() for _ in range(40)]
    run_concurrently([functools.partial(held.release, tokens=Tokens(1, 0)) for held in running])
    assert not gate.passes()


@pytest.mark.parametrize("amount", [1, 1000])
def test_a_bucket_that_an_absurd_count_has_emptied_waits_no_longer_than_a_date_can_say(amount: int) -> None:
    gate = Gate(rules=(rule("tokens", amount, 60, "token-bucket"),))
    gate.call(tokens=Tokens(input=10**12, output=0))
    assert gate.wait_seconds() == 366 * 86_400
