"""One call's way through the gate: it is admitted with a key, may move to others, and leaves."""

from __future__ import annotations

import logging
import secrets
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings

from routing.gate.breaker_signals import NONE
from routing.gate.denials import (
    denial_without_redis,
    host_key_rejection_without_redis,
    parse_denial,
    parse_host_key_rejection,
)
from routing.gate.liveness import liveness
from routing.gate.redis import RedisUnavailable
from routing.gate.script_results import run_checked_script

if TYPE_CHECKING:
    from routing.gate.breaker_signals import BreakerSignal
    from routing.resolution.route import RouteBinding, Rule, UsableKey
    from routing.upstream.call import HostKeyRejection, Tokens

logger = logging.getLogger(__name__)

# A place is held until the call's deadline and a little longer, since leaving takes a moment.
LEASE_MARGIN_MS = 60_000


class Admission:
    """`enter` first, `leave` last, whatever happens between them. `verdict` and `sent` are of the key in hand.

    `key_refused`: the last key was refused; after `leave` that is how the call ended.

    A call costs one round trip, and a second one where there is something to say at its end: a key that failed, a
    probe, a place to release, tokens to charge, a reservation to give back. `now_ms`: 0 for Redis's clock.
    """

    def __init__(self, *, rules: tuple[Rule, ...], deadline: float, now_ms: int = 0) -> None:
        self.signal: BreakerSignal = NONE
        self.sent = False
        self.now_ms = now_ms
        self.host_key_rejected: HostKeyRejection | None = None
        self._rules = rules
        self._deadline = deadline
        # Short: an exact sliding window keeps one for every call in it.
        self._id = secrets.token_urlsafe(9)
        self._admitted_at = 0
        self._any_sent = False
        self._binding: RouteBinding | None = None
        self._key: UsableKey | None = None
        self._key_acquired_at = 0
        self._is_probe = False
        self._tried: list[int] = []
        self._rejected: list[int] = []

    def acquire(self, binding: RouteBinding) -> UsableKey | None:
        """A key of the binding. Raises Refused when the call cannot go out now.

        Called again for a further binding when the first one's host cannot be reached; then None when no key of it
        may be used.
        """
        if self._binding is None:
            return self._admit(binding)
        self._release_key(self._binding)
        self._binding, self._tried, self._rejected = binding, [], []
        return self._move(binding)

    def next_key(self) -> UsableKey | None:
        """A key of the same binding that was not tried yet. None: there is none, or none may be used now."""
        if self._binding is None or len(self._tried) == len(self._binding.keys):
            return None
        return self._move(self._binding)

    def release(self, tokens: Tokens | None) -> None:
        """Never raises: an answer counts, whether or not Redis can be told of it. Safe to call at any time."""
        choice, self._binding = self._binding, None
        if choice is None:
            return
        self._any_sent = self._any_sent or self.sent
        self._record_rejection(choice)
        if self._must_report():
            ends = {
                "ends": True,
                "sent": self._any_sent,
                "at": self._admitted_at,
                "charges": _token_charges(tokens),
            }
            self._finish(choice, **self._key_report(), **ends)

    def _admit(self, choice: RouteBinding) -> UsableKey:
        try:
            call = self._script_call(lease=self._lease_ms())
            answer = run_checked_script("admit", plan=choice.plan, call=call, keys=len(choice.keys))
        except RedisUnavailable as away:
            logger.warning("calls wait, since Redis is away: %s", away)
            self._defer_release_all(choice)
            raise denial_without_redis() from away
        if answer[0] != b"admitted":
            raise parse_denial(answer)
        self._binding, self._admitted_at = choice, int(answer[3])
        return self._take_key(choice, answer)

    def _move(self, choice: RouteBinding) -> UsableKey | None:
        self._record_rejection(choice)
        call = self._script_call(lease=self._lease_ms(), tried=self._tried, **self._key_report())
        self._any_sent = self._any_sent or self.sent
        self._key = None
        try:
            answer = run_checked_script("move", plan=choice.plan, call=call, keys=len(choice.keys))
        except RedisUnavailable as away:
            logger.warning("no other host key can be chosen, since Redis is away: %s", away)
            self._defer_release_all(choice)
            return None
        self._handle_result(choice, call, answer)
        return self._take_key(choice, answer) if answer[0] == b"admitted" else None

    def _take_key(self, choice: RouteBinding, answer: list[Any]) -> UsableKey:
        self.signal, self.sent, self.host_key_rejected = NONE, False, None
        number, self._is_probe, self._key_acquired_at = int(answer[1]), bool(answer[2]), int(answer[3])
        self._tried.append(number)
        self._key = choice.keys[number - 1]
        return self._key

    def _release_key(self, choice: RouteBinding) -> None:
        """Its host could not be reached: what is held of the key is given back."""
        if self._key is not None and (self._key.rules or self._is_probe):
            self._finish(choice, **self._key_report(), charges={})
        self._key = None

    def _key_report(self) -> dict[str, Any]:
        """What is to be said of the key in hand, if there is one."""
        if self._key is None:
            return {}
        verdict = self.signal.as_json()
        left = {"index": self._tried[-1], "verdict": verdict, "sent": self.sent, "at": self._key_acquired_at}
        return {"left": left} | ({"refused": self._rejected} if self.host_key_rejected else {})

    def _record_rejection(self, choice: RouteBinding) -> None:
        if self._key is not None and self.signal.rejects_key:
            self._rejected.append(self._tried[-1])
            self.host_key_rejected = host_key_rejection_without_redis(
                others=len(self._rejected) < len(choice.keys)
            )

    def _handle_result(self, choice: RouteBinding, call: dict[str, Any], answer: list[Any]) -> None:
        """What a script says of the key that was left, and of the others for a call that ends with its refusal."""
        if "refused" in call and answer[0] == b"none":
            self.host_key_rejected = parse_host_key_rejection(answer)
        if opened_ms := int(answer[-1]):
            left = call["left"]
            told = {
                "host": choice.host,
                "host_key": choice.keys[left["index"] - 1].name,
                "status": left["verdict"]["status"],
                "seconds": round(opened_ms / 1000),
            }
            logger.warning("the breaker of a host key opened", extra=told)

    def _must_report(self) -> bool:
        key_rules = self._key.rules if self._key else ()
        return (
            (self._key is not None and (self._is_probe or self.signal.is_failure))
            or any(rule.meter != "requests" for rule in self._rules + key_rules)
            or (bool(self._rules) and not self._any_sent)
            or (bool(key_rules) and not self.sent)
        )

    def _finish(self, choice: RouteBinding, **words: Any) -> None:
        call = self._script_call(**words)
        try:
            answer = run_checked_script("finish", plan=choice.plan, call=call, keys=len(choice.keys))
        except RedisUnavailable as away:
            logger.warning("Redis was not told how a call ended: %s", away)
            liveness.defer_release(plan=choice.plan, call=_repeatable_release(call))
        else:
            self._handle_result(choice, call, answer)

    def _defer_release_all(self, choice: RouteBinding) -> None:
        """Nobody knows whether the script ran, and which key it chose: this call gives up all that it may hold."""
        for number in range(1, len(choice.keys) + 1):
            left = {"index": number, "verdict": NONE.as_json()}
            liveness.defer_release(plan=choice.plan, call=_repeatable_release(self._script_call(left=left)))

    def _script_call(self, **words: Any) -> dict[str, Any]:
        lost_ms = settings.RELAY_WORKER_LOST_S * 1000
        return {"id": self._id, "holder": liveness.id, "now": self.now_ms, "lost": lost_ms, **words}

    def _lease_ms(self) -> int:
        return round(max(0.0, self._deadline - time.monotonic()) * 1000) + LEASE_MARGIN_MS


def _repeatable_release(call: dict[str, Any]) -> dict[str, Any]:
    """What may be said twice, or late: places and probes end, nothing is charged or given back.

    Nor is a key judged: by then its breaker may have opened and healed.
    """
    left = {"left": {**call["left"], "verdict": NONE.as_json(), "sent": True}} if "left" in call else {}
    return {**call, **left, "ends": True, "sent": True, "at": 0, "charges": {}}


def _token_charges(tokens: Tokens | None) -> dict[str, int]:
    """By the meter of a rule. Unknown tokens charge nothing."""
    if tokens is None:
        return {}
    return {
        "tokens": tokens.input + tokens.cache_read + tokens.cache_write + tokens.output,
        "tokens.input": tokens.input,
        "tokens.output": tokens.output,
        "tokens.cache_read": tokens.cache_read,
        "tokens.cache_write": tokens.cache_write,
        "tokens.reasoning": tokens.reasoning,
        "tokens.cache_write_5m": tokens.cache_write_5m,
        "tokens.cache_write_1h": tokens.cache_write_1h,
    }
