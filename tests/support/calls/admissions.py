"""Passages through the gate for tests: bindings without rows, and a clock that the test moves."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.gate.admission import Passage
from routing.gate.breaker_signals import GOOD, NONE, Verdict
from routing.gate.denials import Refused
from routing.gate.plan import encode_plan
from routing.resolution.host_call import HostCall
from routing.resolution.route import Choice, Rule, UsableKey

if TYPE_CHECKING:
    from routing.upstream.call import Tokens

START_MS = 1_800_000_000_000
"""A multiple of every window in the tests."""

REFUSED = Verdict("refused", status="401")
FORBIDDEN = Verdict("trouble", status="403")
TROUBLE = Verdict("trouble", status="503")
LOST = Verdict("trouble", status="connection lost")


def busy(seconds: float) -> Verdict:
    return Verdict("busy", status="429", milliseconds=round(seconds * 1000))


def rule(meter: str, amount: int, window_seconds: int | None = None, strategy: str = "") -> Rule:
    return Rule(meter=meter, amount=amount, window_seconds=window_seconds, strategy=strategy)


@dataclass
class Gate:
    """A policy with one binding, and calls that pass at the time `now_ms` (0: Redis's own)."""

    keys: tuple[str, ...] = ("one",)
    rules: tuple[Rule, ...] = ()
    key_rules: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    selection: str = "prioritized"
    now_ms: int = START_MS
    policy: str = field(default_factory=lambda: str(uuid.uuid4()))
    host: str = "host"

    @property
    def choice(self) -> Choice:
        """Secrets are unique to the policy, so that breakers are."""
        keys = tuple(
            UsableKey(
                id=f"{self.policy}-{name}",
                name=name,
                secret=f"{self.policy}{name}",
                rules=self.key_rules.get(name, ()),
            )
            for name in self.keys
        )
        plan = encode_plan(
            policy=self.policy, host=self.host, selection=self.selection, rules=self.rules, keys=keys
        )
        return Choice(
            host=self.host,
            call=HostCall(url="", auth="bearer"),
            adapter="openai",
            upstream_name="m",
            prices=None,
            keys=keys,
            plan=plan,
        )

    def after(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)

    def at(self, seconds: float) -> None:
        """Seconds after the start."""
        self.now_ms = START_MS + round(seconds * 1000)

    def passage(self, *, seconds: float = 60) -> Passage:
        return Passage(rules=self.rules, deadline=time.monotonic() + seconds, now_ms=self.now_ms)

    def enter(self) -> Entered:
        """Raises Refused."""
        passage = self.passage()
        key = passage.enter(self.choice)
        assert key is not None
        return Entered(self, passage, key.name)

    def call(self, verdict: Verdict = GOOD, *, tokens: Tokens | None = None) -> str:
        """A whole call, over at once; the name of its key. Raises Refused."""
        entered = self.enter()
        entered.leave(verdict, tokens=tokens)
        return entered.key

    def passes(self) -> bool:
        """Whether a call passes now; it is over at once."""
        try:
            self.call()
        except Refused:
            return False
        return True

    def refusal(self) -> Refused:
        try:
            entered = self.enter()
        except Refused as refused:
            return refused
        raise AssertionError(f"admitted with {entered.key}")

    def wait_seconds(self) -> float:
        return self.refusal().postponement.seconds


@dataclass
class Entered:
    gate: Gate
    passage: Passage
    key: str

    def leave(self, verdict: Verdict = GOOD, *, sent: bool = True, tokens: Tokens | None = None) -> None:
        self.passage.now_ms = self.gate.now_ms
        self.passage.verdict, self.passage.sent = verdict, sent
        self.passage.leave(tokens)

    def give_back(self) -> None:
        self.leave(NONE, sent=False)

    def another(self, verdict: Verdict) -> str | None:
        self.passage.now_ms = self.gate.now_ms
        self.passage.verdict, self.passage.sent = verdict, True
        key = self.passage.another()
        self.key = key.name if key else self.key
        return key.name if key else None
