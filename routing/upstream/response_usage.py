"""Whether an upstream's 2xx body is a usable answer, and what it says of tokens and of its cost."""

from __future__ import annotations

import functools
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from relaybatch.http.utf8 import invalid_utf8_at
from routing.upstream.call import NOTHING_SAID, Used
from routing.upstream.reported_cost import upstream_cost_nanos

if TYPE_CHECKING:
    from routing.adapters import Adapter

# Real ones have hundreds. A larger one is not made into values, which may take thirty times as much.
MAX_USAGE_BYTES = 65_536


class Unusable(Exception):  # noqa: N818 -- an upstream's fault, not ours
    """The reason is a few words of ours and never part of the body. `used`: what it says of use all the same."""

    def __init__(self, reason: str, *, used: Used = NOTHING_SAID) -> None:
        super().__init__(reason)
        self.reason = reason
        self.used = used


class _Answer(msgspec.Struct):
    error: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET


def used_by_answer(body: bytes, adapter: Adapter) -> Used:
    """What a usable answer reports of its use. Raises Unusable.

    Usable is a JSON object in UTF-8. It may hold what strict readers refuse but JSON allows: lone surrogates
    (escaped), NUL, integers of any size. An `error` without the shape's own fields is no answer.
    """
    answer = _read(body, adapter)
    if _is_given(answer.error) and not _has_fields(answer, adapter):
        raise Unusable("an error in place of an answer", used=_used(answer, adapter))
    return _used(answer, adapter)


def used_by_error(body: bytes, adapter: Adapter) -> Used:
    """What an error reports to have used all the same; mostly nothing."""
    try:
        return _used(_read(body, adapter), adapter)
    except Unusable:
        return NOTHING_SAID


def _read(body: bytes, adapter: Adapter) -> _Answer:
    if not body.strip(b" \t\r\n"):
        raise Unusable("empty")
    if not body.isascii() and invalid_utf8_at(body) is not None:
        raise Unusable("not UTF-8")
    try:
        return _decoded(body, _decoder(adapter.answer_fields))
    except RecursionError:
        raise Unusable("nested too deep") from None
    except msgspec.ValidationError:
        raise Unusable("not a JSON object") from None
    except msgspec.DecodeError:
        raise Unusable("not JSON") from None


@functools.cache
def _decoder(answer_fields: frozenset[str]) -> msgspec.json.Decoder[_Answer]:
    """Of the members that are looked at, and no others: an answer may have millions."""
    names = {f"field_{number}": name for number, name in enumerate(sorted(answer_fields))}
    fields = [(field, Raw | UnsetType, UNSET) for field in names]
    return msgspec.json.Decoder(msgspec.defstruct("_AnswerOfShape", fields, bases=(_Answer,), rename=names))


def _decoded(body: bytes, decoder: msgspec.json.Decoder[_Answer]) -> _Answer:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # The parser refuses a lone surrogate's escape, which JSON allows: look again with other escapes in the place
        # of all that begin as one does. No name and no number that is looked at has any.
        return decoder.decode(body.replace(b"\\ud", b"\\uf").replace(b"\\uD", b"\\uF"))


def _is_given(part: Raw | UnsetType) -> bool:
    return isinstance(part, Raw) and bytes(memoryview(part)[:4]) != b"null"


def _has_fields(answer: _Answer, adapter: Adapter) -> bool:
    """Any of those by which a real answer is known, whatever their value."""
    return any(
        getattr(answer, f"field_{number}") is not UNSET for number in range(len(adapter.answer_fields))
    )


def _used(answer: _Answer, adapter: Adapter) -> Used:
    if not isinstance(answer.usage, Raw):
        return NOTHING_SAID
    if len(answer.usage) > MAX_USAGE_BYTES:
        return Used(is_told=True)
    try:
        usage: Any = _USAGE.decode(answer.usage)
    except (msgspec.MsgspecError, RecursionError):
        return Used(is_told=True)
    cost = upstream_cost_nanos(usage)
    return Used(tokens=adapter.usage(usage), upstream_cost_nanos=cost, is_told=bool(usage))


def _exact(written: str) -> Decimal | None:
    """None for an exponent that no Decimal has."""
    try:
        return Decimal(written)
    except InvalidOperation:
        return None


_USAGE = msgspec.json.Decoder(float_hook=_exact)
