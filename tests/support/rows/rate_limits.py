"""Rate limits for the rows of `tests.support.rows.catalog`."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from routing.models import HostKey, Policy, RateLimit, RateLimitRule
from routing.resolution import resolve

if TYPE_CHECKING:
    from types import SimpleNamespace


def rate_limit(*rules: tuple[str, int, int | None, str]) -> RateLimit:
    """Rules as `(meter, amount, window_seconds, strategy)`; concurrency has None and ""."""
    limit = RateLimit.objects.create(name=f"limit{uuid.uuid4().hex[:8]}")
    RateLimitRule.objects.bulk_create(
        RateLimitRule(
            rate_limit=limit,
            position=position,
            meter=meter,
            amount=amount,
            window_seconds=window,
            strategy=strategy,
        )
        for position, (meter, amount, window, strategy) in enumerate(rules)
    )
    return limit


def limit_policy(catalog: SimpleNamespace, *rules: tuple[str, int, int | None, str]) -> None:
    Policy.objects.filter(id=catalog.policy.id).update(rate_limit=rate_limit(*rules))
    resolve.clear_cache()


def limit_host_key(host_key: HostKey, *rules: tuple[str, int, int | None, str]) -> None:
    HostKey.objects.filter(id=host_key.id).update(rate_limit=rate_limit(*rules))
    resolve.clear_cache()


def select_keys(catalog: SimpleNamespace, selection: str) -> None:
    Policy.objects.filter(id=catalog.policy.id).update(key_selection=selection)
    resolve.clear_cache()
