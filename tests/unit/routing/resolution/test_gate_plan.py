from __future__ import annotations

import hashlib
import json
from typing import Any

from routing.resolution.gate_plan import breaker_id, encode_plan
from routing.resolution.route import Rule, UsableKey


def plan_of(*, rules: tuple[Rule, ...] = (), keys: tuple[UsableKey, ...] = ()) -> Any:
    return json.loads(encode_plan(policy="p", host="h", selection="round-robin", rules=rules, keys=keys))


def test_a_plan_names_its_turn_its_rules_and_its_keys() -> None:
    rule = Rule(meter="requests", amount=5, window_seconds=10, strategy="fixed-window")
    key = UsableKey(id="k", name="main", secret="planted-secret", rules=(rule,))
    assert plan_of(rules=(rule,), keys=(key,)) == {
        "selection": "round-robin",
        "turn": "rb:gate2:turn:round-robin:p:h",
        "rules": [
            {
                "key": "rb:gate2:limit:policy:p:requests:fixed-window:10000",
                "meter": "requests",
                "amount": 5,
                "window": 10_000,
                "strategy": "fixed-window",
            }
        ],
        "keys": [
            {
                "id": "k",
                "breaker": hashlib.sha256(b"planted-secret").hexdigest(),
                "rules": [
                    {
                        "key": "rb:gate2:limit:key:k:requests:fixed-window:10000",
                        "meter": "requests",
                        "amount": 5,
                        "window": 10_000,
                        "strategy": "fixed-window",
                    }
                ],
            }
        ],
    }


def test_of_rules_that_share_a_counter_the_strictest_is_kept() -> None:
    rules = tuple(Rule("requests", amount, 10, "fixed-window") for amount in (7, 3, 5))
    other = Rule("requests", 9, 20, "fixed-window")
    assert sorted(rule["amount"] for rule in plan_of(rules=(*rules, other))["rules"]) == [3, 9]


def test_concurrency_has_a_strategy_and_no_window() -> None:
    (rule,) = plan_of(rules=(Rule("concurrency", 4, None, ""),))["rules"]
    assert (rule["strategy"], rule["window"]) == ("concurrency", 0)


def test_a_window_is_no_longer_than_lua_can_count() -> None:
    (rule,) = plan_of(rules=(Rule("requests", 1, 10**15, "fixed-window"),))["rules"]
    assert rule["window"] == 2**52


def test_rows_with_the_same_secret_share_a_breaker_and_those_without_one_do_not() -> None:
    assert breaker_id("same", host_key_id="1") == breaker_id("same", host_key_id="2")
    assert "same" not in breaker_id("same", host_key_id="1")
    assert breaker_id("", host_key_id="1") != breaker_id("", host_key_id="2")
