"""The plan of a binding: what the scripts have to know of it, encoded once for all of its calls."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from routing.resolution.route import Rule, UsableKey

# Of every key of the gate in Redis, as in scripts/call.lua. The number rises when what is stored changes its form, so
# that no release misreads what another one wrote.
PREFIX = "rb:gate2:"
# Up to here, Lua's numbers count milliseconds exactly.
_MAX_WINDOW_MS = 2**52


class _Selection(msgspec.Struct):
    selection: str


def encode_plan(
    *, policy: str, host: str, selection: str, rules: Sequence[Rule], keys: Sequence[UsableKey]
) -> bytes:
    """Encode the plan as JSON. `policy` and `host` are ids.

    A counter belongs to a policy or a host key, and to meter, window and strategy: changing an amount keeps what was
    counted.
    """
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


def takes_turns(plan: bytes) -> bool:
    """Whether the calls of the plan take its keys in turns; else all take the first that they may."""
    return msgspec.json.decode(plan, type=_Selection).selection != "prioritized"


def breaker_id(secret: str, *, host_key_id: str) -> str:
    """The breaker's id: rows with the same secret share one, a row without a secret has its own.

    It is a hash, so that Redis never sees the secret.
    """
    if not secret:
        return f"host-key-{host_key_id}"
    return hashlib.sha256(secret.encode()).hexdigest()


def _rules(owner: str, rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """The rules as JSON; of rules that would share a counter, only the strictest."""
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
