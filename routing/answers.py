"""Whether an upstream's 2xx body is a usable answer, and what it says of tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from routing.adapters import Adapter
    from routing.call import Tokens

# One escape at a time from the left, so that an escaped backslash never lends its second half to a `u`.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F])|.)", re.DOTALL
)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NULL = b"null"


class Unusable(Exception):  # noqa: N818 -- an upstream's fault, not ours
    """The reason is a few words of ours and never part of the body."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def tokens_of_answer(body: bytes, adapter: Adapter) -> Tokens | None:
    """The tokens that a usable answer reports, None where they cannot be told. Raises Unusable.

    Usable is a JSON object in UTF-8. It may hold what strict readers refuse but JSON allows: lone surrogates
    (escaped), NUL, integers of any size. An `error` without the shape's own fields is no answer.
    """
    found = _members(body)
    if bytes(found.get("error", _NULL)) != _NULL and adapter.answer_fields.isdisjoint(found):
        raise Unusable("an error in place of an answer")
    return _tokens(found, adapter)


def tokens_of_error(body: bytes, adapter: Adapter) -> Tokens | None:
    """What an error reports to have used all the same; mostly nothing."""
    try:
        return _tokens(_members(body), adapter)
    except Unusable:
        return None


def _members(body: bytes) -> dict[str, msgspec.Raw]:
    if not body.strip(b" \t\r\n"):
        raise Unusable("empty")
    try:
        body.isascii() or body.decode()
        return _decoded(body)
    except UnicodeDecodeError:
        raise Unusable("not UTF-8") from None
    except RecursionError:
        raise Unusable("nested too deep") from None
    except msgspec.ValidationError:
        raise Unusable("not a JSON object") from None
    except msgspec.DecodeError:
        raise Unusable("not JSON") from None


def _decoded(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _MEMBERS.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # The parser refuses a lone surrogate's escape, which JSON allows: look again without them.
        return _MEMBERS.decode(_ESCAPE.sub(_without_lone_surrogate, body))


def _without_lone_surrogate(escape: re.Match[bytes]) -> bytes:
    return b"\\uff" if escape[1] else escape[0]


def _tokens(found: dict[str, msgspec.Raw], adapter: Adapter) -> Tokens | None:
    if "usage" not in found:
        return None
    try:
        usage: Any = msgspec.json.decode(found["usage"])
    except (msgspec.MsgspecError, RecursionError):
        return None
    return adapter.usage(usage)
