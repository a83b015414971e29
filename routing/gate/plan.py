"""What the scripts have to know of a binding, written once for all of its calls."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from routing.gate.redis import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from routing.resolution.route import Rule, UsableKey

# Milliseconds that Lua's numbers still count exactly.
_MAX_WINDOW_MS = 2**52


def encode_plan(
    *, policy: str, host: str, selection: str, rules: Sequence[Rule], keys: Sequence[UsableKey]
) -> bytes:
    """`policy`: its id. Counters belong to a policy or a host key, and to meter, window and strategy: changing an
    amount keeps what was counted."""
    return msgspec.json.encode(
        {
            "selection": selection,
            "turn": f"{PREFIX}turn:{selection}:{policy}:{host}",
            "rules": _rules(f"policy:{policy}", rules),
            "keys": [
                {
                    "id": key.id,
                    "breaker": breaker_id(key.secret, host_key_id=key.id),
                    "rules": _rules(f"key:{key.id}", key.rules),
                }
                for key in keys
            ],
        }
    )


def breaker_id(secret: str, *, host_key_id: str) -> str:
    """Rows with the same secret share a breaker, and one without a secret has its own. Redis never sees the secret."""
    if not secret:
        return f"host-key-{host_key_id}"
    return hashlib.sha256(secret.encode()).hexdigest()


def _rules(owner: str, rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Of rules that would share a counter, the strictest."""
    strictest: dict[str, dict[str, Any]] = {}
    for rule in sorted(rules, key=lambda rule: -rule.amount):
        strategy = "concurrency" if rule.meter == "concurrency" else rule.strategy
        window = min((rule.window_seconds or 0) * 1000, _MAX_WINDOW_MS)
        key = f"{PREFIX}limit:{owner}:{rule.meter}:{strategy}:{window}"
        strictest[key] = {
            "key": key,
            "meter": rule.meter,
            "amount": rule.amount,
            "window": window,
            "strategy": strategy,
        }
    return list(strictest.values())
