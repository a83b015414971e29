"""The bindings that a policy can use now, with prices, rate limits and the secrets of its host keys."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.calls.call import PriceList, PriceRate
from routing.models import PolicyHostKey, Rate, RateLimitRule
from routing.resolution.gate_plan import encode_plan
from routing.resolution.host_call import HostCall, UncallableBinding, build_host_call
from routing.resolution.route import RouteBinding, Rule, UsableKey
from routing.resolution.unusable_log import log_unusable, mark_usable
from routing.secrets.encryption import SecretError
from routing.secrets.host_key_secret import host_key_secret

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from routing.models import Binding, HostKey, Model, Policy, Pricing

    _Rules = Mapping[uuid.UUID | None, tuple[Rule, ...]]

# A secret with other characters cannot be a header, and the HTTP library's error would show it.
_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class UsableBindings:
    """`adapters`: of the bindings for which the policy has a usable host key, in their order.

    `bindings`: those of them that can be called now. `errors`: by adapter, why the first of the others cannot.
    `policy_rules`: of the policy's rate limit.
    """

    policy_rules: tuple[Rule, ...]
    adapters: tuple[str, ...] = ()
    bindings: tuple[RouteBinding, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)


def usable_bindings(bindings: list[Binding], *, policy: Policy, model: Model) -> UsableBindings:
    """Of the bindings, in their order, those for which the policy has a usable host key."""
    rows = _host_key_rows(policy)
    limit_ids = {policy.rate_limit_id, *(row.host_key.rate_limit_id for row in rows)} - {None}
    rules = _rules_by_rate_limit(limit_ids)
    policy_rules = rules.get(policy.rate_limit_id, ())
    keys = _usable_keys(rows, rules)
    with_keys = [binding for binding in bindings if binding.host_id in keys]
    if not with_keys:
        return UsableBindings(policy_rules)
    calls, errors = _callable_bindings(with_keys, model)
    return UsableBindings(
        policy_rules,
        adapters=tuple(dict.fromkeys(binding.adapter for binding in with_keys)),
        bindings=_route_bindings(calls, model=model, policy=policy, keys=keys, rules=policy_rules),
        errors=errors,
    )


def _route_bindings(
    calls: list[tuple[Binding, HostCall]],
    *,
    model: Model,
    policy: Policy,
    keys: dict[uuid.UUID, tuple[UsableKey, ...]],
    rules: tuple[Rule, ...],
) -> tuple[RouteBinding, ...]:
    prices = _price_lists({b.pricing for b, _ in calls if b.pricing is not None and b.pricing.enabled})
    return tuple(
        RouteBinding(
            host=binding.host.name,
            host_call=call,
            adapter=binding.adapter,
            upstream_name=binding.upstream_name or model.name,
            prices=prices.get(binding.pricing_id) if binding.pricing_id else None,
            keys=keys[binding.host_id],
            plan=encode_plan(
                policy=str(policy.id),
                host=str(binding.host_id),
                selection=policy.key_selection,
                rules=rules,
                keys=keys[binding.host_id],
            ),
        )
        for binding, call in calls
    )


def _callable_bindings(
    bindings: list[Binding], model: Model
) -> tuple[list[tuple[Binding, HostCall]], dict[str, str]]:
    """The bindings that can be called now with their calls, and by adapter the error of the first one that cannot."""
    found: list[tuple[Binding, HostCall]] = []
    errors: dict[str, str] = {}
    for binding in bindings:
        try:
            call = build_host_call(binding, upstream_name=binding.upstream_name or model.name)
        except UncallableBinding as problem:
            log_unusable(binding.id, str(problem))
            errors.setdefault(binding.adapter, str(problem))
        else:
            mark_usable(binding.id)
            found.append((binding, call))
    return found, errors


def _host_key_rows(policy: Policy) -> list[PolicyHostKey]:
    return list(
        PolicyHostKey.objects.filter(policy=policy, host_key__enabled=True)
        .select_related("host_key__host")
        .order_by("position", "id")
    )


def _usable_keys(rows: list[PolicyHostKey], rules: _Rules) -> dict[uuid.UUID, tuple[UsableKey, ...]]:
    """The usable host keys by host, in the policy's order."""
    found: dict[uuid.UUID, tuple[UsableKey, ...]] = defaultdict(tuple)
    for row in rows:
        key = _usable_key(row.host_key, rules.get(row.host_key.rate_limit_id, ()))
        if key is not None:
            found[row.host_key.host_id] += (key,)
    return dict(found)


def _rules_by_rate_limit(limit_ids: set[uuid.UUID | None]) -> _Rules:
    """The rules by rate limit; a disabled rate limit has none."""
    found: dict[uuid.UUID | None, tuple[Rule, ...]] = defaultdict(tuple)
    if limit_ids:
        rows = RateLimitRule.objects.filter(rate_limit__in=limit_ids, rate_limit__enabled=True)
        for row in rows.order_by("position", "id"):
            found[row.rate_limit_id] += (Rule(row.meter, row.amount, row.window_seconds, row.strategy),)
    return found


def _usable_key(host_key: HostKey, rules: tuple[Rule, ...]) -> UsableKey | None:
    """The key with its secret; None, and logged, when the secret cannot be read or sent now."""
    try:
        secret = host_key_secret(host_key)
    except SecretError as problem:
        log_unusable(host_key.id, str(problem))
        return None
    if secret and not _HEADER_SAFE.fullmatch(secret):
        log_unusable(host_key.id, f"host key {host_key.name}: its value cannot be sent in a header")
        return None
    mark_usable(host_key.id)
    return UsableKey(id=str(host_key.id), name=host_key.name, secret=secret, rules=rules)


def _price_lists(pricings: set[Pricing]) -> dict[uuid.UUID, PriceList]:
    if not pricings:
        return {}
    rates: dict[uuid.UUID, tuple[PriceRate, ...]] = defaultdict(tuple)
    for rate in Rate.objects.filter(pricing__in=pricings).order_by("meter", "above_tokens"):
        rates[rate.pricing_id] += (PriceRate(rate.meter, rate.rate_nanos, rate.above_tokens),)
    return {p.pk: PriceList(p.name, p.version, p.currency, rates[p.pk]) for p in pricings}
