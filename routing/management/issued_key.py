"""The output of the commands that issue a relay key: the only place where a key's value is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.credentials.relay_keys import IssuedKey


def issued_key_result(issued: IssuedKey) -> dict[str, str]:
    return {"id": str(issued.id), "prefix": issued.prefix, "key": issued.value}


def render_issued_key(result: Mapping[str, str]) -> str:
    return f"id: {result['id']}\nkey: {result['key']}\nKeep the key now: it is not shown again."
