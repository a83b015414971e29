"""Why an item waits before its next attempt: the public names shown in a batch's status."""

from __future__ import annotations

from enum import StrEnum


class WaitingReason(StrEnum):
    """`batches_batchitem.waiting_reason`. The first three are also the reasons of a postponement."""

    RATE_LIMIT = "rate_limit"  # a limit of the policy, or of every host key, is spent
    BREAKER_OPEN = "breaker_open"  # no host key works now
    REDIS_AWAY = "redis_away"  # Redis is unavailable, or answers with an error
    RETRY = "retry"  # backoff, or the upstream's Retry-After
    WORKER_STOPPED = "worker_stopped"  # the worker was stopped or lost
