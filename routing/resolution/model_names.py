"""What a caller may call a model: `name`, `provider/name`, `name@host`, `provider/name@host`. And what is granted."""

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
    """One way to read what the caller wrote; None where it names no provider or no host."""

    model: str
    provider: str | None = None
    host: str | None = None


def parse_model_name(name: str) -> list[ParsedModelName]:
    """All ways to read a name, the one that wins first: an exact name wins over a split one.

    The first `/` ends a provider, the last `@` begins a host. Nothing for what no row can be called.
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
    """What a wildcard may begin with to fit the name; `*` alone is the empty one."""
    return [name[:length] for length in range(min(len(name), MAX_MODEL_CHARACTERS) + 1)]


def printable_name(name: str) -> str:
    """For messages and rows: cut to length, and without what PostgreSQL's text and UTF-8 refuse."""
    return _UNSTORABLE.sub("\ufffd", name[:MAX_MODEL_CHARACTERS])


def is_granted(grants: Collection[str], *, provider: str, model: str, host: str | None) -> bool:
    """Whether a policy with these grants may call the model on the host; `host` None asks: on every host.

    No grants grant all. Names of providers and hosts have no `/` and no `@`, so a grant says one thing only,
    unless a model's own name ends like a host.
    """
    if not grants:
        return True
    allowed_by = {provider, f"{provider}/{model}"}
    if host is not None:
        allowed_by |= {f"{provider}/{model}@{host}", f"{provider}@{host}", f"@{host}"}
    return not allowed_by.isdisjoint(grants)
