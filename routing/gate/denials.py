"""Why the gate denies a call now, and when it may be made.

| denied because | reason | waits | a caller that does not wait gets |
| --- | --- | --- | --- |
| the policy's limit is reached | rate_limit | if the caller waits | rate_limited |
| every key's own limit is reached | rate_limit | if the caller waits | rate_limited |
| every key was rejected with 401 | breaker_open | if the caller waits | no_healthy_keys |
| breakers are open, and not all of them for 401 | breaker_open | always | no_healthy_keys |
| Redis is unavailable | redis_away | always | no_healthy_keys |
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from routing.calls.call import HostKeyRejection, Postponement
from routing.calls.failures import CallFailed, Failure, FailureCode
from routing.calls.waiting_reason import WaitingReason

if TYPE_CHECKING:
    from collections.abc import Sequence

REDIS_UNAVAILABLE_WAIT_SECONDS = (2.0, 4.0)
# An absurd token count may empty a bucket for longer than a datetime can hold.
MAX_WAIT_SECONDS = 366 * 86_400


class AdmissionDenied(CallFailed):
    """Nothing was sent and nothing is reserved."""

    def __init__(self, failure: Failure, postponement: Postponement) -> None:
        super().__init__(failure)
        self.postponement = postponement


def parse_denial(result: Sequence[Any]) -> AdmissionDenied:
    """Turn a result of the script `admit`, other than `admitted`, into the exception to raise."""
    word, seconds, detail = result[0], min(int(result[1]) / 1000, MAX_WAIT_SECONDS), result[2]
    if word == b"limit":
        return _policy_limit_reached(seconds, concurrency_limit=int(detail))
    if detail == b"limit":
        failure = Failure(FailureCode.RATE_LIMITED, "the rate limit of every host key is spent")
        return AdmissionDenied(failure, Postponement(WaitingReason.RATE_LIMIT, seconds))
    failure = Failure(FailureCode.NO_HEALTHY_KEYS, "no healthy keys: the breaker of every host key is open")
    return AdmissionDenied(
        failure, Postponement(WaitingReason.BREAKER_OPEN, seconds, must_wait=detail != b"unauthorized")
    )


def parse_host_key_rejection(result: Sequence[Any]) -> HostKeyRejection:
    """Parse what `next_key` or `release` returned for a call whose host keys the upstream rejected."""
    return HostKeyRejection(seconds=int(result[1]) / 1000, has_other_keys=bool(result[2]))


def host_key_rejection_without_redis(*, has_other_keys: bool) -> HostKeyRejection:
    """Guess the wait: while Redis is unavailable, it is unknown when a key may be usable."""
    return HostKeyRejection(seconds=_jitter(*REDIS_UNAVAILABLE_WAIT_SECONDS), has_other_keys=has_other_keys)


def denial_without_redis() -> AdmissionDenied:
    failure = Failure(FailureCode.NO_HEALTHY_KEYS, "no healthy keys are known while Redis is unavailable")
    return AdmissionDenied(
        failure,
        Postponement(WaitingReason.REDIS_AWAY, _jitter(*REDIS_UNAVAILABLE_WAIT_SECONDS), must_wait=True),
    )


def _policy_limit_reached(seconds: float, *, concurrency_limit: int) -> AdmissionDenied:
    failure = Failure(FailureCode.RATE_LIMITED, "the rate limit of the policy is spent")
    if concurrency_limit:
        # When a running call ends is unknown: the waiting calls must not all retry at the same moment.
        return AdmissionDenied(
            failure,
            Postponement(
                WaitingReason.RATE_LIMIT, _jitter(0.8, 2.0) * seconds, concurrency_limit=concurrency_limit
            ),
        )
    return AdmissionDenied(failure, Postponement(WaitingReason.RATE_LIMIT, seconds, whole_policy=True))


def _jitter(minimum: float, maximum: float) -> float:
    return random.uniform(minimum, maximum)  # noqa: S311 -- spreads load, guards nothing
