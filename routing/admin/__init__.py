"""Admin pages for callers and the catalog. Importing this package registers them."""

from routing.admin import host, host_key, model, policy, project, relay_key

__all__ = ["host", "host_key", "model", "policy", "project", "relay_key"]
