"""Admin pages for callers and the catalog. Importing this package registers them."""

from routing.admin import host, host_key, model, policy, pricing, provider, rate_limit
from routing.admin.callers import project, relay_key, service_account, team, user

__all__ = [
    "host",
    "host_key",
    "model",
    "policy",
    "pricing",
    "project",
    "provider",
    "rate_limit",
    "relay_key",
    "service_account",
    "team",
    "user",
]
