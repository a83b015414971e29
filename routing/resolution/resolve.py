"""From a model's name to the bindings and host keys that a policy may use for it."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from django.db.models import Q

from routing.gate.plan import encode_plan
from routing.models import Alias, Binding, Host, Model, Policy, PolicyHostKey, Rate, RateLimitRule
from routing.resolution.host_call import HostCall, UncallableBinding, build_host_call
from routing.resolution.model_names import is_granted, parse_model_name, printable_name, wildcard_prefixes
from routing.resolution.route import Route, RouteBinding, Rule, UsableKey
from routing.resolution.unusable_log import log_unusable, mark_usable
from routing.secrets.encryption import SecretError, host_key_secret
from routing.ttl_cache import TtlCache
from routing.upstream.call import PriceList, PriceRate
from routing.upstream.failures import Failure, FailureCode

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from routing.models import HostKey, Pricing
    from routing.resolution.model_names import ParsedModelName

    _Rules = Mapping[uuid.UUID | None, tuple[Rule, ...]]

# A secret with anything else in it cannot be a header, and the HTTP library's complaint would show it.
_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a name leads to for a policy. `served_as`: the adapters of the usable bindings, in their order. `troubles`:
    for an adapter, why the first of its bindings that are none of the choices cannot be called now.
    """

    route: Route
    failure: Failure | None = None
    adapters: tuple[str, ...] = ()
    binding_errors: Mapping[str, str] = field(default_factory=dict)

    def for_adapter(self, adapter: str) -> Resolution:
        """The same for calls of one shape: bindings of others are passed over.

        There are choices exactly when there is no failure.
        """
        if self.failure is not None:
            return self
        same = tuple(choice for choice in self.route.bindings if choice.adapter == adapter)
        failure = None if same else self._failure_for(adapter)
        return replace(self, route=replace(self.route, bindings=same), failure=failure)

    def _failure_for(self, adapter: str) -> Failure:
        if adapter in self.adapters:
            message = f"upstream unreachable: {self.binding_errors[adapter]}"
            return Failure(FailureCode.UPSTREAM_UNREACHABLE, message, retryable=True)
        shapes = " and ".join(self.adapters)
        message = f"cross-shape dispatch: {self.route.model} is served as {shapes}, not as {adapter}"
        return Failure(code=FailureCode.CROSS_SHAPE, message=message)


_cache: TtlCache[tuple[uuid.UUID, str], Resolution] = TtlCache(seconds=0.5)


def resolve_model(*, policy_id: uuid.UUID, model_name: str, adapter: str) -> Resolution:
    """The names known so far also where it fails. Rows may be half a second old.

    Fails with model_not_found, model_not_allowed, model_disabled, no_binding, no_keys, cross_shape, policy_deleted or
    policy_disabled.
    """
    if not parse_model_name(model_name):
        return _failed_resolution(
            _NO_ROUTE, FailureCode.MODEL_NOT_FOUND, f"no model is called {printable_name(model_name)}"
        )
    found = _cache.get((policy_id, model_name), lambda: _load(policy_id, model_name))
    return found.for_adapter(adapter)


def clear_cache() -> None:
    """Drop what is kept, so that the next answer is read from the rows."""
    _cache.clear()


_NO_ROUTE = Route(policy="", model="", provider="", bindings=())


def _load(policy_id: uuid.UUID, name: str) -> Resolution:
    policy = Policy.objects.filter(pk=policy_id).first()
    if policy is None:
        return _failed_resolution(
            _NO_ROUTE, FailureCode.POLICY_DELETED, "the policy of this call no longer exists"
        )
    route = replace(_NO_ROUTE, policy=policy.name)
    if not policy.enabled:
        return _failed_resolution(route, FailureCode.POLICY_DISABLED, f"the policy {policy.name} is disabled")
    found = _find_model(name) or _find_alias(name)
    if found is None:
        return _failed_resolution(
            route, FailureCode.MODEL_NOT_FOUND, f"no model is called {printable_name(name)}"
        )
    model, host = found
    route = replace(route, model=model.name, provider=model.provider.name)
    return _resolve_bindings(route, policy=policy, model=model, only_host=host, name=printable_name(name))


def _find_model(name: str) -> tuple[Model, str | None] | None:
    """The model that the name spells, and the host when it names one."""
    parsed_names = parse_model_name(name)
    hosts = {reading.host for reading in parsed_names} - {None}
    known = set(Host.objects.filter(name__in=hosts).values_list("name", flat=True)) if hosts else set()
    models = {
        model.name: model
        for model in Model.objects.filter(
            name__in={reading.model for reading in parsed_names}
        ).select_related("provider")
    }
    for reading in parsed_names:
        model = models.get(reading.model)
        if model is not None and _matches(reading, model, known):
            return model, reading.host
    return None


def _matches(parsed: ParsedModelName, model: Model, known_hosts: set[str]) -> bool:
    provider_fits = parsed.provider is None or parsed.provider == model.provider.name
    return provider_fits and (parsed.host is None or parsed.host in known_hosts)


def _find_alias(name: str) -> tuple[Model, None] | None:
    """The exact alias, else the wildcard with the longest prefix."""
    rows = Alias.objects.filter(
        Q(wildcard=False, pattern=name) | Q(wildcard=True, pattern__in=wildcard_prefixes(name))
    ).select_related("model__provider")
    best = max(rows, key=lambda alias: (not alias.wildcard, len(alias.pattern)), default=None)
    return None if best is None else (best.model, None)


def _resolve_bindings(
    route: Route, *, policy: Policy, model: Model, only_host: str | None, name: str
) -> Resolution:
    grants = set(policy.models_granted)
    bindings = list(
        Binding.objects.filter(model=model, **({"host__name": only_host} if only_host else {}))
        .select_related("host", "pricing")
        .prefetch_related("host__headers")
        .order_by("position", "id")
    )
    allowed = [
        b
        for b in bindings
        if is_granted(grants, provider=route.provider, model=route.model, host=b.host.name)
    ]
    if not allowed and not is_granted(grants, provider=route.provider, model=route.model, host=None):
        return _failed_resolution(
            route, FailureCode.MODEL_NOT_ALLOWED, f"the policy does not grant the model {name}"
        )
    if not (model.enabled and model.provider.enabled):
        return _failed_resolution(route, FailureCode.MODEL_DISABLED, f"the model {name} is disabled")
    enabled = [binding for binding in allowed if binding.enabled and binding.host.enabled]
    if not enabled:
        return _failed_resolution(route, FailureCode.NO_BINDING, f"the model {name} has no enabled binding")
    rows = _host_key_rows(policy)
    rules = _rules_by_rate_limit(
        {policy.rate_limit_id, *(row.host_key.rate_limit_id for row in rows)} - {None}
    )
    route = replace(route, rules=rules.get(policy.rate_limit_id, ()))
    keys = _usable_keys(rows, rules)
    reached = [binding for binding in enabled if binding.host_id in keys]
    if not reached:
        return _failed_resolution(
            route, FailureCode.NO_KEYS, f"the policy has no usable host key for the model {name}"
        )
    calls, errors = _callable_bindings(reached, model)
    choices = _route_bindings(calls, model=model, policy=policy, keys=keys, rules=route.rules)
    served_as = tuple(dict.fromkeys(binding.adapter for binding in reached))
    return Resolution(replace(route, bindings=choices), adapters=served_as, binding_errors=errors)


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
    """Of those that can be called now, and what is wrong with the first of the others, by adapter."""
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
    """By host, each in the policy's order."""
    found: dict[uuid.UUID, tuple[UsableKey, ...]] = defaultdict(tuple)
    for row in rows:
        key = _usable_key(row.host_key, rules.get(row.host_key.rate_limit_id, ()))
        if key is not None:
            found[row.host_key.host_id] += (key,)
    return dict(found)


def _rules_by_rate_limit(limit_ids: set[uuid.UUID | None]) -> _Rules:
    """A rate limit that is switched off limits nothing."""
    found: dict[uuid.UUID | None, tuple[Rule, ...]] = defaultdict(tuple)
    if limit_ids:
        rows = RateLimitRule.objects.filter(rate_limit__in=limit_ids, rate_limit__enabled=True)
        for row in rows.order_by("position", "id"):
            found[row.rate_limit_id] += (Rule(row.meter, row.amount, row.window_seconds, row.strategy),)
    return found


def _usable_key(host_key: HostKey, rules: tuple[Rule, ...]) -> UsableKey | None:
    """None for a key whose secret is not there now: the others may do."""
    try:
        secret = host_key_secret(host_key)
    except SecretError as problem:
        log_unusable(host_key.id, str(problem))
        return None
    if secret and not _HEADER_SAFE.fullmatch(secret):
        log_unusable(host_key.id, f"host key {host_key.name}: what is there cannot be a header")
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


def _failed_resolution(route: Route, code: FailureCode, message: str) -> Resolution:
    return Resolution(route, Failure(code=code, message=message))
