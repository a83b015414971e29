"""Admissions for tests: bindings without rows, and a clock that the test moves."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.gate.admission import Admission
from routing.gate.breaker_signals import NONE, OK, BreakerSignal
from routing.gate.denials import AdmissionDenied
from routing.resolution.gate_plan import encode_plan
from routing.resolution.host_call import HostCall
from routing.resolution.route import RouteBinding, Rule, UsableKey

if TYPE_CHECKING:
    from routing.calls.call import Tokens

START_MS = 1_800_000_000_000
"""A multiple of every window in the tests."""

UNAUTHORIZED = BreakerSignal("unauthorized", status="401")
FORBIDDEN = BreakerSignal("error", status="403")
ERROR = BreakerSignal("error", status="503")
CONNECTION_LOST = BreakerSignal("error", status="connection lost")


def throttled(seconds: float) -> BreakerSignal:
    return BreakerSignal("throttled", status="429", milliseconds=round(seconds * 1000))


def rule(meter: str, amount: int, window_seconds: int | None = None, strategy: str = "") -> Rule:
    return Rule(meter=meter, amount=amount, window_seconds=window_seconds, strategy=strategy)


@dataclass
class Gate:
    """A policy with one binding, and calls at the time `now_ms` (0: Redis's own)."""

    keys: tuple[str, ...] = ("one",)
    rules: tuple[Rule, ...] = ()
    key_rules: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    selection: str = "prioritized"
    now_ms: int = START_MS
    policy: str = field(default_factory=lambda: str(uuid.uuid4()))
    host: str = "host"

    @property
    def binding(self) -> RouteBinding:
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
        return RouteBinding(
            host=self.host,
            host_call=HostCall(url="", auth="bearer"),
            adapter="openai",
            upstream_name="m",
            prices=None,
            keys=keys,
            plan=plan,
        )

    def advance(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)

    def at(self, seconds: float) -> None:
        """Seconds after the start."""
        self.now_ms = START_MS + round(seconds * 1000)

    def admission(self, *, seconds: float = 60) -> Admission:
        return Admission(rules=self.rules, deadline=time.monotonic() + seconds, now_ms=self.now_ms)

    def acquire(self) -> HeldAdmission:
        """Raises AdmissionDenied."""
        admission = self.admission()
        key = admission.acquire(self.binding)
        assert key is not None
        return HeldAdmission(self, admission, key.name)

    def call(self, signal: BreakerSignal = OK, *, tokens: Tokens | None = None) -> str:
        """Make a whole call, which ends at once; return the name of its key. Raises AdmissionDenied."""
        held = self.acquire()
        held.release(signal, tokens=tokens)
        return held.key

    def passes(self) -> bool:
        """Whether a call is admitted now; it ends at once."""
        try:
            self.call()
        except AdmissionDenied:
            return False
        return True

    def denial(self) -> AdmissionDenied:
        try:
            held = self.acquire()
        except AdmissionDenied as denied:
            return denied
        raise AssertionError(f"admitted with {held.key}")

    def wait_seconds(self) -> float:
        return self.denial().postponement.seconds


@dataclass
class HeldAdmission:
    gate: Gate
    admission: Admission
    key: str

    def release(self, signal: BreakerSignal = OK, *, sent: bool = True, tokens: Tokens | None = None) -> None:
        self.admission.now_ms = self.gate.now_ms
        self.admission.signal, self.admission.sent = signal, sent
        self.admission.release(tokens)

    def give_back(self) -> None:
        self.release(NONE, sent=False)

    def next_key(self, signal: BreakerSignal) -> str | None:
        self.admission.now_ms = self.gate.now_ms
        self.admission.signal, self.admission.sent = signal, True
        key = self.admission.next_key()
        self.key = key.name if key else self.key
        return key.name if key else None
