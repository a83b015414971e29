"""Why the gate lets a call not pass now, and when it may.

| the gate says | reason | waits | a caller who doesn't wait gets |
| --- | --- | --- | --- |
| the policy's limit is spent | rate_limit | if the caller waits | rate_limited |
| every key's own limit is spent | rate_limit | if the caller waits | rate_limited |
| every key was refused with 401 | breaker_open | if the caller waits | no_healthy_keys |
| keys are closed, and not for 401 alone | breaker_open | always | no_healthy_keys |
| Redis is away | redis_away | always | no_healthy_keys |
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from routing.upstream.call import KeyRefused, Postponement
from routing.upstream.failures import CallFailed, Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

AWAY_SECONDS = (2.0, 4.0)
# A bucket that an absurd count has emptied is full again after an age that no date can say.
LONGEST_WAIT_SECONDS = 366 * 86_400


class Refused(CallFailed):
    """Nothing was sent and nothing is reserved."""

    def __init__(self, failure: Failure, postponement: Postponement) -> None:
        super().__init__(failure)
        self.postponement = postponement


def refusal(answer: Sequence[Any]) -> Refused:
    """What an answer of the script `admit` means, other than admitted."""
    word, seconds, detail = answer[0], min(int(answer[1]) / 1000, LONGEST_WAIT_SECONDS), answer[2]
    if word == b"limit":
        return _spent(seconds, at_once=int(detail))
    if detail == b"limit":
        failure = Failure("rate_limited", "the rate limit of every host key is spent")
        return Refused(failure, Postponement("rate_limit", seconds))
    failure = Failure("no_healthy_keys", "no healthy keys: the breaker of every host key is open")
    return Refused(failure, Postponement("breaker_open", seconds, must_wait=detail != b"refused"))


def key_refused(answer: Sequence[Any]) -> KeyRefused:
    """What the answer `none` of a script means for a call that its host keys refused."""
    return KeyRefused(seconds=int(answer[1]) / 1000, others=bool(answer[2]))


def key_refused_unheard(*, others: bool) -> KeyRefused:
    """While Redis is away nobody can tell when a key may be usable."""
    return KeyRefused(seconds=_between(*AWAY_SECONDS), others=others)


def redis_away() -> Refused:
    failure = Failure("no_healthy_keys", "no healthy keys can be told while Redis is away")
    return Refused(failure, Postponement("redis_away", _between(*AWAY_SECONDS), must_wait=True))


def _spent(seconds: float, *, at_once: int) -> Refused:
    failure = Failure("rate_limited", "the rate limit of the policy is spent")
    if at_once:
        # When a running call ends is anybody's guess: those who wait must not all come back at the same moment.
        return Refused(failure, Postponement("rate_limit", _between(0.8, 2.0) * seconds, at_once=at_once))
    return Refused(failure, Postponement("rate_limit", seconds, whole_policy=True))


def _between(least: float, most: float) -> float:
    return random.uniform(least, most)  # noqa: S311 -- spreads load, guards nothing
