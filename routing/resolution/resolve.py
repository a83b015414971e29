"""Resolve a model's name to the bindings and host keys that a policy may use for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from django.db.models import Q

from routing.calls.failures import Failure, FailureCode
from routing.models import Alias, Binding, Host, Model, Policy
from routing.resolution.model_names import is_granted, parse_model_name, printable_name, wildcard_prefixes
from routing.resolution.route import Route
from routing.resolution.usable_bindings import usable_bindings
from routing.ttl_cache import TtlCache

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from routing.resolution.model_names import ParsedModelName


@dataclass(frozen=True, slots=True)
class Resolution:
    """The route that a name leads to for a policy, or the failure.

    `adapters`: those of the bindings for which the policy has a usable host key, in their order. `binding_errors`: by
    adapter, why the first of its bindings that are not in the route cannot be called now.
    """

    route: Route
    failure: Failure | None = None
    adapters: tuple[str, ...] = ()
    binding_errors: Mapping[str, str] = field(default_factory=dict)

    def for_adapter(self, adapter: str) -> Resolution:
        """The resolution for calls of one shape: bindings with other adapters are left out.

        The route has bindings exactly when there is no failure.
        """
        if self.failure is not None:
            return self
        same = tuple(binding for binding in self.route.bindings if binding.adapter == adapter)
        if same and len(same) == len(self.route.bindings):
            return self
        failure = None if same else self._failure_for(adapter)
        return replace(self, route=replace(self.route, bindings=same), failure=failure)

    def _failure_for(self, adapter: str) -> Failure:
        if adapter in self.adapters:
            message = f"upstream unreachable: {self.binding_errors[adapter]}"
            return Failure(FailureCode.UPSTREAM_UNREACHABLE, message, retryable=True)
        shapes = " and ".join(self.adapters)
        message = f"cross-shape dispatch: {self.route.model} is served as {shapes}, not as {adapter}"
        return Failure(code=FailureCode.CROSS_SHAPE, message=message)


RESOLUTIONS: TtlCache[tuple[uuid.UUID, str], Resolution] = TtlCache(seconds=0.5)


def resolve_model(*, policy_id: uuid.UUID, model_name: str, adapter: str) -> Resolution:
    """Resolve the name. A failed resolution has the names found so far. Rows may be half a second old.

    Fails with model_not_found, model_not_allowed, model_disabled, no_binding, no_keys, cross_shape, policy_deleted or
    policy_disabled.
    """
    if not parse_model_name(model_name):
        return _failed_resolution(
            _NO_ROUTE, FailureCode.MODEL_NOT_FOUND, f"no model is called {printable_name(model_name)}"
        )
    found = RESOLUTIONS.get((policy_id, model_name), lambda: _load(policy_id, model_name))
    return found.for_adapter(adapter)


def clear_cache() -> None:
    """Clear the cache, so that the next call reads the rows."""
    RESOLUTIONS.clear()


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
    """The model that the name means, and the host when it names one."""
    parsed_names = parse_model_name(name)
    hosts = {parsed.host for parsed in parsed_names} - {None}
    known = set(Host.objects.filter(name__in=hosts).values_list("name", flat=True)) if hosts else set()
    models = {
        model.name: model
        for model in Model.objects.filter(name__in={parsed.model for parsed in parsed_names}).select_related(
            "provider"
        )
    }
    for parsed in parsed_names:
        model = models.get(parsed.model)
        if model is not None and _matches(parsed, model, known):
            return model, parsed.host
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
    allowed = _granted_bindings(grants, route=route, model=model, only_host=only_host)
    if not allowed and not is_granted(grants, provider=route.provider, model=route.model, host=None):
        return _failed_resolution(
            route, FailureCode.MODEL_NOT_ALLOWED, f"the policy does not grant the model {name}"
        )
    if not (model.enabled and model.provider.enabled):
        return _failed_resolution(route, FailureCode.MODEL_DISABLED, f"the model {name} is disabled")
    enabled = [binding for binding in allowed if binding.enabled and binding.host.enabled]
    if not enabled:
        return _failed_resolution(route, FailureCode.NO_BINDING, f"the model {name} has no enabled binding")
    usable = usable_bindings(enabled, policy=policy, model=model)
    route = replace(route, rules=usable.policy_rules)
    if not usable.adapters:
        return _failed_resolution(
            route, FailureCode.NO_KEYS, f"the policy has no usable host key for the model {name}"
        )
    return Resolution(
        replace(route, bindings=usable.bindings), adapters=usable.adapters, binding_errors=usable.errors
    )


def _granted_bindings(
    grants: set[str], *, route: Route, model: Model, only_host: str | None
) -> list[Binding]:
    bindings = (
        Binding.objects.filter(model=model, **({"host__name": only_host} if only_host else {}))
        .select_related("host", "pricing")
        .prefetch_related("host__headers")
        .order_by("position", "id")
    )
    return [
        binding
        for binding in bindings
        if is_granted(grants, provider=route.provider, model=route.model, host=binding.host.name)
    ]


def _failed_resolution(route: Route, code: FailureCode, message: str) -> Resolution:
    return Resolution(route, Failure(code=code, message=message))
