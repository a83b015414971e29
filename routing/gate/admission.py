"""One call's way through the gate: it is admitted with a key, may move to others, and leaves."""

from __future__ import annotations

import logging
import secrets
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings

from routing.gate.breaker_signals import NONE
from routing.gate.denials import key_refused, key_refused_unheard, redis_away, refusal
from routing.gate.liveness import presence
from routing.gate.redis import RedisAway
from routing.gate.script_results import ask

if TYPE_CHECKING:
    from routing.gate.breaker_signals import Verdict
    from routing.resolution.route import Choice, Rule, UsableKey
    from routing.upstream.call import KeyRefused, Tokens

logger = logging.getLogger(__name__)

# A place is held until the call's deadline and a little longer, since leaving takes a moment.
MARGIN_MS = 60_000


class Passage:
    """`enter` first, `leave` last, whatever happens between them. `verdict` and `sent` are of the key in hand.

    `key_refused`: the last key was refused; after `leave` that is how the call ended.

    A call costs one round trip, and a second one where there is something to say at its end: a key that failed, a
    probe, a place to release, tokens to charge, a reservation to give back. `now_ms`: 0 for Redis's clock.
    """

    def __init__(self, *, rules: tuple[Rule, ...], deadline: float, now_ms: int = 0) -> None:
        self.verdict: Verdict = NONE
        self.sent = False
        self.now_ms = now_ms
        self.key_refused: KeyRefused | None = None
        self._rules = rules
        self._deadline = deadline
        # Short: an exact sliding window keeps one for every call in it.
        self._id = secrets.token_urlsafe(9)
        self._at = 0
        self._ever_sent = False
        self._choice: Choice | None = None
        self._key: UsableKey | None = None
        self._key_at = 0
        self._is_probe = False
        self._tried: list[int] = []
        self._refused: list[int] = []

    def enter(self, choice: Choice) -> UsableKey | None:
        """A key of the binding. Raises Refused when the call cannot go out now.

        Called again for a further binding when the first one's host cannot be reached; then None when no key of it
        may be used.
        """
        if self._choice is None:
            return self._admitted(choice)
        self._give_up_key(self._choice)
        self._choice, self._tried, self._refused = choice, [], []
        return self._moved(choice)

    def another(self) -> UsableKey | None:
        """A key of the same binding that was not tried yet. None: there is none, or none may be used now."""
        if self._choice is None or len(self._tried) == len(self._choice.keys):
            return None
        return self._moved(self._choice)

    def leave(self, tokens: Tokens | None) -> None:
        """Never raises: an answer counts, whether or not Redis can be told of it. Safe to call at any time."""
        choice, self._choice = self._choice, None
        if choice is None:
            return
        self._ever_sent = self._ever_sent or self.sent
        self._note_refusal(choice)
        if self._has_news():
            ends = {"ends": True, "sent": self._ever_sent, "at": self._at, "charges": _charges(tokens)}
            self._tell(choice, **self._left(), **ends)

    def _admitted(self, choice: Choice) -> UsableKey:
        try:
            call = self._call(lease=self._lease())
            answer = ask("admit", plan=choice.plan, call=call, keys=len(choice.keys))
        except RedisAway as away:
            logger.warning("calls wait, since Redis is away: %s", away)
            self._owe_all(choice)
            raise redis_away() from away
        if answer[0] != b"admitted":
            raise refusal(answer)
        self._choice, self._at = choice, int(answer[3])
        return self._took(choice, answer)

    def _moved(self, choice: Choice) -> UsableKey | None:
        self._note_refusal(choice)
        call = self._call(lease=self._lease(), tried=self._tried, **self._left())
        self._ever_sent = self._ever_sent or self.sent
        self._key = None
        try:
            answer = ask("move", plan=choice.plan, call=call, keys=len(choice.keys))
        except RedisAway as away:
            logger.warning("no other host key can be chosen, since Redis is away: %s", away)
            self._owe_all(choice)
            return None
        self._learn(choice, call, answer)
        return self._took(choice, answer) if answer[0] == b"admitted" else None

    def _took(self, choice: Choice, answer: list[Any]) -> UsableKey:
        self.verdict, self.sent, self.key_refused = NONE, False, None
        number, self._is_probe, self._key_at = int(answer[1]), bool(answer[2]), int(answer[3])
        self._tried.append(number)
        self._key = choice.keys[number - 1]
        return self._key

    def _give_up_key(self, choice: Choice) -> None:
        """Its host could not be reached: what is held of the key is given back."""
        if self._key is not None and (self._key.rules or self._is_probe):
            self._tell(choice, **self._left(), charges={})
        self._key = None

    def _left(self) -> dict[str, Any]:
        """What is to be said of the key in hand, if there is one."""
        if self._key is None:
            return {}
        verdict = self.verdict.as_json()
        left = {"index": self._tried[-1], "verdict": verdict, "sent": self.sent, "at": self._key_at}
        return {"left": left} | ({"refused": self._refused} if self.key_refused else {})

    def _note_refusal(self, choice: Choice) -> None:
        if self._key is not None and self.verdict.refuses_key:
            self._refused.append(self._tried[-1])
            self.key_refused = key_refused_unheard(others=len(self._refused) < len(choice.keys))

    def _learn(self, choice: Choice, call: dict[str, Any], answer: list[Any]) -> None:
        """What a script says of the key that was left, and of the others for a call that ends with its refusal."""
        if "refused" in call and answer[0] == b"none":
            self.key_refused = key_refused(answer)
        if opened_ms := int(answer[-1]):
            left = call["left"]
            told = {
                "host": choice.host,
                "host_key": choice.keys[left["index"] - 1].name,
                "status": left["verdict"]["status"],
                "seconds": round(opened_ms / 1000),
            }
            logger.warning("the breaker of a host key opened", extra=told)

    def _has_news(self) -> bool:
        key_rules = self._key.rules if self._key else ()
        return (
            (self._key is not None and (self._is_probe or self.verdict.is_failure))
            or any(rule.meter != "requests" for rule in self._rules + key_rules)
            or (bool(self._rules) and not self._ever_sent)
            or (bool(key_rules) and not self.sent)
        )

    def _tell(self, choice: Choice, **words: Any) -> None:
        call = self._call(**words)
        try:
            answer = ask("finish", plan=choice.plan, call=call, keys=len(choice.keys))
        except RedisAway as away:
            logger.warning("Redis was not told how a call ended: %s", away)
            presence.owe(plan=choice.plan, call=_repeatable(call))
        else:
            self._learn(choice, call, answer)

    def _owe_all(self, choice: Choice) -> None:
        """Nobody knows whether the script ran, and which key it chose: this call gives up all that it may hold."""
        for number in range(1, len(choice.keys) + 1):
            left = {"index": number, "verdict": NONE.as_json()}
            presence.owe(plan=choice.plan, call=_repeatable(self._call(left=left)))

    def _call(self, **words: Any) -> dict[str, Any]:
        lost_ms = settings.RELAY_WORKER_LOST_S * 1000
        return {"id": self._id, "holder": presence.id, "now": self.now_ms, "lost": lost_ms, **words}

    def _lease(self) -> int:
        return round(max(0.0, self._deadline - time.monotonic()) * 1000) + MARGIN_MS


def _repeatable(call: dict[str, Any]) -> dict[str, Any]:
    """What may be said twice, or late: places and probes end, nothing is charged or given back.

    Nor is a key judged: by then its breaker may have opened and healed.
    """
    left = {"left": {**call["left"], "verdict": NONE.as_json(), "sent": True}} if "left" in call else {}
    return {**call, **left, "ends": True, "sent": True, "at": 0, "charges": {}}


def _charges(tokens: Tokens | None) -> dict[str, int]:
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
