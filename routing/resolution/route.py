"""The route of a call: the usable bindings of a model, in order, each with the host keys to try."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routing.calls.call import PriceList
    from routing.resolution.host_call import HostCall


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a rate limit. The meter `concurrency` has neither window nor strategy."""

    meter: str
    amount: int
    window_seconds: int | None
    strategy: str


@dataclass(frozen=True, slots=True)
class UsableKey:
    """`secret`: empty for a host without authentication. `rules`: of the host key's own rate limit."""

    id: str
    name: str
    secret: str = field(repr=False)
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteBinding:
    """A usable binding. `keys` is never empty, and in the policy's order. `plan`: the same for the gate's scripts.

    `host_call`: the part that is the same for all of its calls.
    """

    host: str
    host_call: HostCall
    adapter: str
    upstream_name: str
    prices: PriceList | None
    keys: tuple[UsableKey, ...]
    plan: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Route:
    """Names for the usage event, and the bindings in the order in which they are to be tried.

    `rules`: of the policy's rate limit.
    """

    policy: str
    model: str
    provider: str
    bindings: tuple[RouteBinding, ...]
    rules: tuple[Rule, ...] = ()
