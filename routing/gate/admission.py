"""Admission of one call: acquire a host key, perhaps move on to others, and release what is held."""

from __future__ import annotations

import logging
import secrets
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings

from routing.gate import closed_breakers
from routing.gate.breaker_signals import NONE
from routing.gate.closed_breakers import KeyTurns, remembered_turns
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
    from routing.calls.call import HostKeyRejection, Tokens
    from routing.gate.breaker_signals import BreakerSignal
    from routing.resolution.route import RouteBinding, Rule, UsableKey

logger = logging.getLogger(__name__)

# A place is leased until the call's deadline and a little longer, since the release takes a moment.
LEASE_MARGIN_MS = 60_000


class Admission:
    """Call `acquire` first and `release` last, whatever happens between them.

    `signal` and `sent` describe the key in hand, and are set by the caller before it moves on or releases.
    `host_key_rejected`: the upstream rejected the last key; after `release`, that is how the call ended.
    `now_ms`: 0 for Redis's clock.

    A call costs one round trip to Redis, none where closed_breakers.py remembers that any call may pass. A further one
    is made only when its end has to be reported: a key that failed, a probe, a place to release, tokens to charge, a
    reservation to refund.
    """

    def __init__(self, *, rules: tuple[Rule, ...], deadline: float, now_ms: int = 0) -> None:
        self.signal: BreakerSignal = NONE
        self.sent = False
        self.now_ms = now_ms
        self.host_key_rejected: HostKeyRejection | None = None
        self._rules = rules
        self._deadline = deadline
        self._id = ""
        self._admitted_at = 0
        self._any_sent = False
        self._binding: RouteBinding | None = None
        self._key: UsableKey | None = None
        self._key_acquired_at = 0
        self._is_probe = False
        self._tried: list[int] = []
        self._rejected: list[int] = []

    def acquire(self, binding: RouteBinding) -> UsableKey | None:
        """Acquire a key of the binding. Raises AdmissionDenied when the call may not be sent now.

        Call it again with the next binding when the host of the first one cannot be reached. It then returns None
        when no key of that binding may be used.
        """
        if self._binding is None:
            return self._admit(binding)
        self._release_key(self._binding)
        self._binding, self._tried, self._rejected = binding, [], []
        return self._move(binding)

    def next_key(self) -> UsableKey | None:
        """Release the key in hand and acquire an untried one of the same binding; None when none may be used now."""
        if self._binding is None or len(self._tried) == len(self._binding.keys):
            return None
        return self._move(self._binding)

    def release(self, tokens: Tokens | None) -> None:
        """Release everything and charge the tokens. Never raises, and may be called at any time.

        A response counts even when Redis is unavailable: the release is deferred then.
        """
        binding, self._binding = self._binding, None
        if binding is None:
            return
        self._any_sent = self._any_sent or self.sent
        self._record_rejection(binding)
        if self._must_report():
            self._finish(
                binding,
                **self._key_report(),
                ends=True,
                sent=self._any_sent,
                admitted_at=self._admitted_at,
                charges=_token_charges(tokens),
            )

    def _admit(self, binding: RouteBinding) -> UsableKey:
        has_rules = bool(self._rules) or any(key.rules for key in binding.keys)
        try:
            return self._admit_by_script(binding)[0] if has_rules else self._admit_without_rules(binding)
        except RedisUnavailable as error:
            logger.warning("redis unavailable, calls wait", extra={"reason": str(error)})
            raise denial_without_redis() from error

    def _admit_without_rules(self, binding: RouteBinding) -> UsableKey:
        turns = remembered_turns(
            binding.plan, keys=len(binding.keys), admit=lambda: self._admit_by_script(binding)[1]
        )
        if self._key is not None:  # by the script, which this thread called just now
            return self._key
        if turns is None:
            return self._admit_by_script(binding)[0]
        self._binding = binding
        return self._take_key(binding, index=turns.next_index())

    def _admit_by_script(self, binding: RouteBinding) -> tuple[UsableKey, KeyTurns | None]:
        """Return the key, and the turns of the keys if all breakers are closed."""
        keys = len(binding.keys)
        call = self._script_call(lease_ms=self._lease_ms())
        try:
            result = run_checked_script("admit", plan=binding.plan, call=call, keys=keys)
        except RedisUnavailable:
            # The script may have run, and its result been lost.
            self._defer_release_all(binding)
            raise
        if result[0] != b"admitted":
            raise parse_denial(result)
        _, index, is_probe, now, all_closed = result
        self._binding, self._admitted_at = binding, now
        key = self._take_key(binding, index=index, is_probe=bool(is_probe), at=now)
        return key, KeyTurns(binding.plan, keys=keys, last_index=index) if all_closed else None

    def _move(self, binding: RouteBinding) -> UsableKey | None:
        self._record_rejection(binding)
        call = self._script_call(lease_ms=self._lease_ms(), tried=self._tried, **self._key_report())
        self._any_sent = self._any_sent or self.sent
        self._key = None
        try:
            result = self._report("next_key", binding, call)
        except RedisUnavailable as error:
            logger.warning("redis unavailable, no failover", extra={"reason": str(error)})
            self._defer_release_all(binding)
            return None
        self._handle_result(binding, call, result)
        if result[0] != b"admitted":
            return None
        return self._take_key(binding, index=result[1], is_probe=bool(result[2]), at=result[3])

    def _take_key(
        self, binding: RouteBinding, *, index: int, is_probe: bool = False, at: int = 0
    ) -> UsableKey:
        self.signal, self.sent, self.host_key_rejected = NONE, False, None
        self._is_probe, self._key_acquired_at = is_probe, at
        self._tried.append(index)
        self._key = binding.keys[index - 1]
        return self._key

    def _release_key(self, binding: RouteBinding) -> None:
        """Release the key in hand, whose host could not be reached."""
        if self._key is not None and (self._key.rules or self._is_probe):
            self._finish(binding, **self._key_report(), charges={})
        self._key = None

    def _key_report(self) -> dict[str, Any]:
        """The script's arguments for the key in hand; empty when there is none."""
        if self._key is None:
            return {}
        released = {
            "index": self._tried[-1],
            "signal": self.signal.as_json(),
            "sent": self.sent,
            "acquired_at": self._key_acquired_at,
        }
        return {"released": released} | ({"rejected": self._rejected} if self.host_key_rejected else {})

    def _record_rejection(self, binding: RouteBinding) -> None:
        if self._key is not None and self.signal.rejects_key:
            self._rejected.append(self._tried[-1])
            has_other_keys = len(self._rejected) < len(binding.keys)
            self.host_key_rejected = host_key_rejection_without_redis(has_other_keys=has_other_keys)

    def _handle_result(self, binding: RouteBinding, call: dict[str, Any], result: list[Any]) -> None:
        """Take over what the script says of the other keys, and log a breaker that the released key opened."""
        if "rejected" in call and result[0] != b"admitted":
            self.host_key_rejected = parse_host_key_rejection(result)
        if opened_ms := int(result[-1]):
            released = call["released"]
            logger.warning(
                "breaker opened",
                extra={
                    "host": binding.host,
                    "host_key": binding.keys[released["index"] - 1].name,
                    "status": released["signal"]["status"],
                    "seconds": round(opened_ms / 1000),
                },
            )

    def _must_report(self) -> bool:
        key_rules = self._key.rules if self._key else ()
        return (
            (self._key is not None and (self._is_probe or self.signal.is_failure))
            or any(rule.meter != "requests" for rule in self._rules + key_rules)
            or (bool(self._rules) and not self._any_sent)
            or (bool(key_rules) and not self.sent)
        )

    def _finish(self, binding: RouteBinding, **arguments: Any) -> None:
        call = self._script_call(**arguments)
        try:
            result = self._report("release", binding, call)
        except RedisUnavailable as error:
            logger.warning("redis unavailable, release deferred", extra={"reason": str(error)})
            liveness.defer_release(plan=binding.plan, call=_repeatable_release(call))
        else:
            self._handle_result(binding, call, result)

    def _report(self, script: str, binding: RouteBinding, call: dict[str, Any]) -> list[Any]:
        try:
            return run_checked_script(script, plan=binding.plan, call=call, keys=len(binding.keys))
        finally:
            if self.signal.is_failure:
                # After the script: what another thread learned just before it is not remembered either.
                closed_breakers.clear_cache()

    def _defer_release_all(self, binding: RouteBinding) -> None:
        """Defer the release of every key: whether the script ran, and which key it chose, is unknown."""
        for number in range(1, len(binding.keys) + 1):
            call = self._script_call(released={"index": number, "signal": NONE.as_json()})
            liveness.defer_release(plan=binding.plan, call=_repeatable_release(call))

    def _script_call(self, **arguments: Any) -> dict[str, Any]:
        # Short, because an exact sliding window stores the id of every call in it.
        self._id = self._id or secrets.token_urlsafe(9)
        lost_ms = settings.RELAY_WORKER_LOST_S * 1000
        return {"id": self._id, "holder": liveness.id, "now": self.now_ms, "lost_ms": lost_ms, **arguments}

    def _lease_ms(self) -> int:
        return round(max(0.0, self._deadline - time.monotonic()) * 1000) + LEASE_MARGIN_MS


def _repeatable_release(call: dict[str, Any]) -> dict[str, Any]:
    """Reduce the call to what may be repeated or sent late: it ends places and probes, and charges or refunds nothing.

    It also signals nothing about a key, whose breaker may have opened and closed since then.
    """
    released = (
        {"released": {**call["released"], "signal": NONE.as_json(), "sent": True}}
        if "released" in call
        else {}
    )
    return {**call, **released, "ends": True, "sent": True, "admitted_at": 0, "charges": {}}


def _token_charges(tokens: Tokens | None) -> dict[str, int]:
    """Token counts by the meter of a rule. Unknown tokens charge nothing."""
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
