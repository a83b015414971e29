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

from routing.upstream.call import HostKeyRejection, Postponement
from routing.upstream.failures import CallFailed, Failure, FailureCode
from routing.upstream.waiting_reason import WaitingReason

if TYPE_CHECKING:
    from collections.abc import Sequence

REDIS_UNAVAILABLE_WAIT_SECONDS = (2.0, 4.0)
# A bucket that an absurd count has emptied is full again after an age that no date can say.
MAX_WAIT_SECONDS = 366 * 86_400


class AdmissionDenied(CallFailed):
    """Nothing was sent and nothing is reserved."""

    def __init__(self, failure: Failure, postponement: Postponement) -> None:
        super().__init__(failure)
        self.postponement = postponement


def parse_denial(answer: Sequence[Any]) -> AdmissionDenied:
    """What an answer of the script `admit` means, other than admitted."""
    word, seconds, detail = answer[0], min(int(answer[1]) / 1000, MAX_WAIT_SECONDS), answer[2]
    if word == b"limit":
        return _policy_limit_reached(seconds, at_once=int(detail))
    if detail == b"limit":
        failure = Failure(FailureCode.RATE_LIMITED, "the rate limit of every host key is spent")
        return AdmissionDenied(failure, Postponement(WaitingReason.RATE_LIMIT, seconds))
    failure = Failure(FailureCode.NO_HEALTHY_KEYS, "no healthy keys: the breaker of every host key is open")
    return AdmissionDenied(
        failure, Postponement(WaitingReason.BREAKER_OPEN, seconds, must_wait=detail != b"refused")
    )


def parse_host_key_rejection(answer: Sequence[Any]) -> HostKeyRejection:
    """What the answer `none` of a script means for a call that its host keys refused."""
    return HostKeyRejection(seconds=int(answer[1]) / 1000, has_other_keys=bool(answer[2]))


def host_key_rejection_without_redis(*, others: bool) -> HostKeyRejection:
    """While Redis is away nobody can tell when a key may be usable."""
    return HostKeyRejection(seconds=_jitter(*REDIS_UNAVAILABLE_WAIT_SECONDS), has_other_keys=others)


def denial_without_redis() -> AdmissionDenied:
    failure = Failure(FailureCode.NO_HEALTHY_KEYS, "no healthy keys can be told while Redis is away")
    return AdmissionDenied(
        failure,
        Postponement(WaitingReason.REDIS_AWAY, _jitter(*REDIS_UNAVAILABLE_WAIT_SECONDS), must_wait=True),
    )


def _policy_limit_reached(seconds: float, *, at_once: int) -> AdmissionDenied:
    failure = Failure(FailureCode.RATE_LIMITED, "the rate limit of the policy is spent")
    if at_once:
        # When a running call ends is anybody's guess: those who wait must not all come back at the same moment.
        return AdmissionDenied(
            failure,
            Postponement(WaitingReason.RATE_LIMIT, _jitter(0.8, 2.0) * seconds, concurrency_limit=at_once),
        )
    return AdmissionDenied(failure, Postponement(WaitingReason.RATE_LIMIT, seconds, whole_policy=True))


def _jitter(minimum: float, maximum: float) -> float:
    return random.uniform(minimum, maximum)  # noqa: S311 -- spreads load, guards nothing
