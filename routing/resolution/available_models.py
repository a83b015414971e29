"""The models that a policy grants and its host keys can reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routing.models import Binding, HostKey, Policy
from routing.resolution.model_names import is_granted

if TYPE_CHECKING:
    import uuid

    from routing.models import Model


def available_models(policy_id: uuid.UUID) -> list[Model]:
    """The models by name, with their providers. Empty for a deleted or disabled policy: every call would fail.

    Whether a host key's secret can be read is not checked: it may be in the workers' environment alone.
    """
    policy = Policy.objects.filter(id=policy_id, enabled=True).first()
    if policy is None:
        return []
    bindings = Binding.objects.filter(
        enabled=True,
        host__enabled=True,
        host__in=HostKey.objects.filter(policies=policy, enabled=True).values("host_id"),
        model__enabled=True,
        model__provider__enabled=True,
    )
    grants = set(policy.models_granted)
    models = {
        binding.model
        for binding in bindings.select_related("host", "model__provider")
        if is_granted(
            grants,
            provider=binding.model.provider.name,
            model=binding.model.name,
            host=binding.host.name,
        )
    }
    return sorted(models, key=lambda model: model.name)
