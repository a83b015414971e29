"""Where a call may go: the usable bindings of a model, in order, each with the host keys to try."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routing.call import PriceList


@dataclass(frozen=True, slots=True)
class UsableKey:
    name: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """A usable binding. `keys` is never empty, and in the policy's order."""

    host: str
    base_url: str
    adapter: str
    upstream_name: str
    prices: PriceList | None
    keys: tuple[UsableKey, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """Names for the usage event, and the choices in the order in which they are to be tried."""

    policy: str
    model: str
    provider: str
    choices: tuple[Choice, ...]


def keys_in_order(choice: Choice) -> tuple[UsableKey, ...]:
    """The host keys to try, first the best. The one place that orders or leaves out keys."""
    return choice.keys
