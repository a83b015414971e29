"""What is the same in all calls of a binding: where they go, and what of its host goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from routing.adapters import ADAPTERS
from routing.upstream_url import call_url

if TYPE_CHECKING:
    from routing.models import Binding


class Uncallable(Exception):  # noqa: N818
    """The rows say something that must not be sent. The words name the host, and hold no value."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """`url`: whole."""

    url: str


def host_call(binding: Binding, *, upstream_name: str) -> HostCall:
    """Raises Uncallable: rows can be changed by other ways than those that check them."""
    host = binding.host
    try:
        return HostCall(
            url=call_url(
                ADAPTERS[binding.adapter], base_url=host.base_url, upstream_name=upstream_name, query={}
            ),
        )
    except ValueError as problem:
        raise Uncallable(f"host {host.name}: {problem}") from None
