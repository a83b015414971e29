"""Check whether an upstream's 2xx body is a usable response, and read the tokens and the cost that it reports."""

from __future__ import annotations

import functools
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from relaybatch.http.body.utf8 import invalid_utf8_at
from routing.calls.call import NO_REPORTED_USAGE, ReportedUsage
from routing.upstream.reported_cost import upstream_cost_nanos

if TYPE_CHECKING:
    from routing.adapters import Adapter

# Real ones have hundreds of bytes. A larger one is not decoded: its values may take thirty times as much memory.
MAX_USAGE_BYTES = 65_536


class UnusableResponse(Exception):  # noqa: N818 -- an upstream's fault, not ours
    """`reason`: a few words of ours, never part of the body. `usage`: what the response reports all the same."""

    def __init__(self, reason: str, *, usage: ReportedUsage = NO_REPORTED_USAGE) -> None:
        super().__init__(reason)
        self.reason = reason
        self.usage = usage


class _Response(msgspec.Struct):
    error: Raw | UnsetType = UNSET
    usage: Raw | UnsetType = UNSET


def usage_of_response(body: bytes, adapter: Adapter) -> ReportedUsage:
    """The usage that a usable response reports. Raises UnusableResponse.

    Usable is a JSON object in UTF-8. It may hold what strict parsers reject but JSON allows: escaped lone surrogates,
    NUL, integers of any size. An `error` without the shape's own fields is not a usable response.
    """
    response = _parse(body, adapter)
    if _is_present(response.error) and not _has_answer_fields(response, adapter):
        raise UnusableResponse("an error in place of an answer", usage=_reported_usage(response, adapter))
    return _reported_usage(response, adapter)


def usage_of_error(body: bytes, adapter: Adapter) -> ReportedUsage:
    """The usage that an error response reports; mostly none."""
    try:
        return _reported_usage(_parse(body, adapter), adapter)
    except UnusableResponse:
        return NO_REPORTED_USAGE


def _parse(body: bytes, adapter: Adapter) -> _Response:
    if not body.strip(b" \t\r\n"):
        raise UnusableResponse("empty")
    if not body.isascii() and invalid_utf8_at(body) is not None:
        raise UnusableResponse("not UTF-8")
    try:
        return _decode(body, _response_decoder(adapter.answer_fields))
    except RecursionError:
        raise UnusableResponse("nested too deep") from None
    except msgspec.ValidationError:
        raise UnusableResponse("not a JSON object") from None
    except msgspec.DecodeError:
        raise UnusableResponse("not JSON") from None


@functools.cache
def _response_decoder(response_fields: frozenset[str]) -> msgspec.json.Decoder[_Response]:
    """A decoder for the members that are needed, and no others: a response may have millions."""
    names = {f"field_{number}": name for number, name in enumerate(sorted(response_fields))}
    fields = [(field, Raw | UnsetType, UNSET) for field in names]
    return msgspec.json.Decoder(msgspec.defstruct("_AnswerOfShape", fields, bases=(_Response,), rename=names))


def _decode(body: bytes, decoder: msgspec.json.Decoder[_Response]) -> _Response:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # msgspec rejects the escape of a lone surrogate, which JSON allows. Decode again with a harmless escape in the
        # place of every one that begins like it; no name and no number that is read here has any.
        return decoder.decode(body.replace(b"\\ud", b"\\uf").replace(b"\\uD", b"\\uF"))


def _is_present(part: Raw | UnsetType) -> bool:
    return isinstance(part, Raw) and bytes(memoryview(part)[:4]) != b"null"


def _has_answer_fields(response: _Response, adapter: Adapter) -> bool:
    """Whether it has any of the fields by which a real response is known, whatever their value."""
    return any(
        getattr(response, f"field_{number}") is not UNSET for number in range(len(adapter.answer_fields))
    )


def _reported_usage(response: _Response, adapter: Adapter) -> ReportedUsage:
    if not isinstance(response.usage, Raw):
        return NO_REPORTED_USAGE
    if len(response.usage) > MAX_USAGE_BYTES:
        return ReportedUsage(is_reported=True)
    try:
        usage: Any = _USAGE.decode(response.usage)
    except (msgspec.MsgspecError, RecursionError):
        return ReportedUsage(is_reported=True)
    cost = upstream_cost_nanos(usage)
    return ReportedUsage(tokens=adapter.usage(usage), upstream_cost_nanos=cost, is_reported=bool(usage))


def _exact_decimal(written: str) -> Decimal | None:
    """Parse a number without rounding; None for an exponent that no Decimal has."""
    try:
        return Decimal(written)
    except InvalidOperation:
        return None


_USAGE = msgspec.json.Decoder(float_hook=_exact_decimal)
