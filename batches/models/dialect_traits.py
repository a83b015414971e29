"""What the core must know of a dialect. Each dialect registers its own traits; the core names none of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DialectTraits:
    """`id_prefix`: written before the 32 hex digits of a batch's public id; empty = the UUID's usual form.

    `has_metadata`: whether the dialect's callers see a batch's metadata.
    """

    id_prefix: str
    has_metadata: bool


_traits: dict[str, DialectTraits] = {}


def register_dialect(dialect: str, traits: DialectTraits) -> None:
    """Record the traits. batches.dialects does so for each dialect when the app is loaded (batches/apps.py)."""
    _traits[dialect] = traits


def traits_of(dialect: str) -> DialectTraits:
    return _traits[dialect]


def id_prefixes() -> list[str]:
    return [traits.id_prefix for traits in _traits.values() if traits.id_prefix]
