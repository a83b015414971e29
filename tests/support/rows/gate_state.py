"""Clear and list the gate's keys in Redis, for tests."""

from __future__ import annotations

from routing.gate import closed_breakers
from routing.gate.redis import client
from routing.resolution.gate_plan import PREFIX


def clear_gate() -> None:
    closed_breakers.clear_cache()
    keys = gate_keys()
    if keys:
        client().delete(*keys)


def gate_keys() -> list[str]:
    return sorted(key.decode() for key in client().scan_iter(f"{PREFIX}*", count=1000))
