"""The catalog: two hosts, policies with and without failover, and an owner for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MODELS = {"openai": "chaos-chat", "openai_responses": "chaos-responses", "anthropic": "chaos-messages"}
HOST_KEYS = {"near": ("near-1", "near-2", "near-3", "near-4"), "far": ("far-1",)}
POLICIES: Mapping[str, tuple[str, ...]] = {
    "wide": ("near-1", "near-2", "near-3", "near-4", "far-1"),
    "narrow": ("near-2",),
    "turns": ("near-3", "near-4", "far-1"),
    "limited": ("near-1", "far-1"),
}
OWNERS = {"ana": "wide", "bert": "narrow", "cleo": "turns", "dora": "limited", "emil": "wide"}
"""Owner to policy. A host key's value is its name."""
REVOKED_HOST_KEY = "near-3"
"""The only host key that the upstream rejects with 401: its breaker is then open for at least a minute."""
REVOKED_OWNER = "emil"
"""The owner whose relay key is revoked in the middle of the run; those of others are only disabled for a while."""


def catalog(ports: Mapping[str, int]) -> dict[str, Any]:
    return {
        "providers": [{"name": "chaos"}],
        "hosts": [{"name": host, "base_url": f"http://127.0.0.1:{ports[host]}"} for host in HOST_KEYS],
        "host_keys": [
            {"name": name, "host": host, "value": name} for host, names in HOST_KEYS.items() for name in names
        ],
        "pricing": [{"name": "chaos", "currency": "USD", "rates": _rates()}],
        "models": [
            {
                "name": name,
                "provider": "chaos",
                "bindings": [{"host": host, "adapter": adapter, "pricing": "chaos"} for host in HOST_KEYS],
            }
            for adapter, name in MODELS.items()
        ],
        "rate_limits": [
            {
                "name": "few",
                "rules": [
                    {"meter": "requests", "amount": 20, "window_seconds": 1, "strategy": "sliding-window"}
                ],
            }
        ],
        "policies": [_policy(name, host_keys) for name, host_keys in POLICIES.items()],
        "teams": [{"name": "chaos"}],
        "projects": [{"name": owner, "team": "chaos"} for owner in OWNERS],
        "service_accounts": [
            {"name": owner, "project": owner, "policy": policy} for owner, policy in OWNERS.items()
        ],
    }


def _policy(name: str, host_keys: tuple[str, ...]) -> dict[str, Any]:
    policy = {
        "name": name,
        "models": [],
        "host_keys": list(host_keys),
        "key_selection": "round-robin" if name == "turns" else "prioritized",
    }
    return policy | ({"rate_limit": "few"} if name == "limited" else {})


def _rates() -> list[dict[str, str]]:
    return [{"meter": "input", "per_million": "2.00"}, {"meter": "output", "per_million": "8.00"}]
