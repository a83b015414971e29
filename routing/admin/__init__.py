"""The admin's pages for callers and catalog; importing this registers them."""

from routing.admin import callers, catalog, host_keys, hosts, policies, relay_keys

__all__ = ["callers", "catalog", "host_keys", "hosts", "policies", "relay_keys"]
