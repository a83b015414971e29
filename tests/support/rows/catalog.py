"""A small catalog for tests: one model for each adapter, bound to one upstream, and one caller with a key."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

from routing.credentials.relay_keys import create_key
from routing.models import (
    Binding,
    Host,
    HostKey,
    Model,
    Policy,
    PolicyHostKey,
    Pricing,
    Project,
    Provider,
    Rate,
    RelayKey,
    ServiceAccount,
    Team,
)
from routing.secrets.encryption import encrypt

MODELS = {
    "openai": "echo-1",
    "openai_responses": "echo-1-responses",
    "openai_embeddings": "echo-1-embeddings",
    "anthropic": "echo-1-messages",
}
RATES = {
    "input": 2_000_000_000,
    "cache_read": 500_000_000,
    "cache_write": 2_500_000_000,
    "output": 8_000_000_000,
}


def make_catalog(
    upstream_url: str,
    *,
    host_key_values: tuple[str, ...] = ("upstream-secret",),
    rates: dict[str, int] | None = None,
    grants: tuple[str, ...] = (),
    suffix: str | None = None,
) -> SimpleNamespace:
    """Rows: team, project, provider, host, host_keys, pricing, models (by adapter), policy, service_account,
    relay_key, and relay_key_value, which is what a caller sends.

    Names other than the models' end in `suffix` (random when left out). Rates are in nanos per million tokens.
    """
    end = uuid.uuid4().hex[:8] if suffix is None else suffix
    rows = _upstream(upstream_url, end, host_key_values=host_key_values)
    rows.pricing = _pricing(end, RATES if rates is None else rates)
    rows.models = {adapter: _model(adapter, name, rows) for adapter, name in MODELS.items()}
    rows.policy = Policy.objects.create(name=f"policy{end}", models_granted=list(grants))
    PolicyHostKey.objects.bulk_create(
        PolicyHostKey(policy=rows.policy, host_key=host_key, position=position)
        for position, host_key in enumerate(rows.host_keys)
    )
    return make_caller(rows, end)


def make_caller(rows: SimpleNamespace, end: str | None = None) -> SimpleNamespace:
    """Another team, project, service account and key on the same catalog; the rest is shared."""
    end = uuid.uuid4().hex[:8] if end is None else end
    caller = SimpleNamespace(**vars(rows))
    caller.team = Team.objects.create(name=f"team{end}")
    caller.project = Project.objects.create(name=f"project{end}", team=caller.team)
    caller.service_account = ServiceAccount.objects.create(
        name=f"account{end}", project=caller.project, policy=caller.policy
    )
    issued = create_key(principal=caller.service_account)
    caller.relay_key = RelayKey.objects.get(id=issued.id)
    caller.relay_key_value = issued.value
    caller.headers = {"Authorization": f"Bearer {issued.value}"}
    return caller


def _upstream(url: str, end: str, *, host_key_values: tuple[str, ...]) -> SimpleNamespace:
    provider = Provider.objects.create(name=f"provider{end}")
    host = Host.objects.create(name=f"host{end}", base_url=url)
    host_keys = [
        HostKey.objects.create(
            name=f"hostkey{end}-{number}", host=host, secret_encrypted=encrypt(value.encode())
        )
        for number, value in enumerate(host_key_values)
    ]
    return SimpleNamespace(provider=provider, host=host, host_keys=host_keys)


def _pricing(end: str, rates: dict[str, int]) -> Pricing:
    pricing = Pricing.objects.create(name=f"pricing{end}", currency="USD")
    Rate.objects.bulk_create(
        Rate(pricing=pricing, meter=meter, rate_nanos=nanos) for meter, nanos in rates.items()
    )
    return pricing


def _model(adapter: str, name: str, rows: Any) -> Model:
    model = Model.objects.create(name=name, provider=rows.provider)
    Binding.objects.create(model=model, host=rows.host, adapter=adapter, pricing=rows.pricing)
    return model
