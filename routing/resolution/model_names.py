"""The names of models that callers write: `name`, `provider/name`, `name@host`, `provider/name@host`; and grants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_MODEL_CHARACTERS = 300
MAX_NAME_CHARACTERS = 200 + 1 + MAX_MODEL_CHARACTERS + 1 + 200

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ParsedModelName:
    """One way to parse a name; `provider` and `host` are None when it names none."""

    model: str
    provider: str | None = None
    host: str | None = None


def parse_model_name(name: str) -> list[ParsedModelName]:
    """All ways to parse a name, in order of precedence: an exact name takes precedence over a split one.

    The first `/` ends a provider, the last `@` begins a host. Empty when no model can have the name.
    """
    if not name or len(name) > MAX_NAME_CHARACTERS or _UNSTORABLE.search(name):
        return []
    provider, slash, rest = name.partition("/")
    found = [ParsedModelName(name)]
    if slash:
        found.append(ParsedModelName(rest, provider))
    if "@" in name:
        left, _, host = name.rpartition("@")
        found.append(ParsedModelName(left, None, host))
        if "/" in left:
            found.append(ParsedModelName(left.partition("/")[2], provider, host))
    return [reading for reading in found if 0 < len(reading.model) <= MAX_MODEL_CHARACTERS]


def wildcard_prefixes(name: str) -> list[str]:
    """The patterns of wildcard aliases that match the name, without their `*`; that of `*` alone is empty."""
    return [name[:length] for length in range(min(len(name), MAX_MODEL_CHARACTERS) + 1)]


def printable_name(name: str) -> str:
    """The name for messages and rows: cut to length, without characters that PostgreSQL's text or UTF-8 cannot hold."""
    return _UNSTORABLE.sub("\ufffd", name[:MAX_MODEL_CHARACTERS])


def is_granted(grants: Collection[str], *, provider: str, model: str, host: str | None) -> bool:
    """Whether a policy with these grants may call the model on the host; with `host` None, on every host.

    An empty list grants everything. Names of providers and hosts have no `/` and no `@`, so a grant has one meaning,
    unless a model's own name ends like a host.
    """
    if not grants:
        return True
    allowed_by = {provider, f"{provider}/{model}"}
    if host is not None:
        allowed_by |= {f"{provider}/{model}@{host}", f"{provider}@{host}", f"@{host}"}
    return not allowed_by.isdisjoint(grants)
