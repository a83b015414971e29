"""Parse query parameters strictly: an unknown, repeated or malformed one is a 400 that names it."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from django.core.exceptions import TooManyFieldsSent

from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from django.http import HttpRequest, QueryDict

DURATION = re.compile(r"([0-9]{1,9})([smhdw])", re.ASCII)
DURATION_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# A `+` that was not percent-encoded arrives as a space.
TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[Tt ](?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:[Zz]|(?P<sign>[+ -])(?P<offset>\d\d:\d\d))",
    re.ASCII,
)
EXPECTED_LIST = "one or more values, separated by commas, on one line and without NUL"
MAX_SHOWN_CHARACTERS = 80
Value = TypeVar("Value")


class QueryParams:
    """A request's query parameters, by name and type.

    An absent parameter is None, an empty tuple or the default. Raises InvalidRequest for a malformed one, and for one
    that is not in `known`. `known=None` ignores unknown ones, since SDKs may add some of their own.
    """

    def __init__(self, request: HttpRequest, *, known: Collection[str] | None) -> None:
        self._query = _query(request)
        unknown = [] if known is None else [name for name in self._query if name not in known]
        if unknown and known is not None:
            unknown = [name[:MAX_SHOWN_CHARACTERS] for name in unknown]
            raise InvalidRequest(
                f"unknown parameter: {', '.join(unknown[:10])} (known: {', '.join(sorted(known)) or 'none'})",
                code="unknown_parameter",
                param=unknown[0],
            )

    def values(self, name: str) -> tuple[str, ...]:
        """All values, split at commas. A value in double quotes may contain commas; an empty one is a value too."""
        given = self._query.getlist(name)
        return tuple(
            value for raw in given for value in _parse(name, raw, parser=_parse_list, expected=EXPECTED_LIST)
        )

    def choices(self, name: str, *, among: Collection[str]) -> tuple[str, ...]:
        values = self.values(name)
        if any(value not in among for value in values):
            raise invalid_param(name, f"one or more of {', '.join(among)}")
        return values

    def numbers(self, name: str, *, maximum: int) -> tuple[int, ...]:
        expected = f"whole numbers from 0 to {maximum}"
        return tuple(
            _parse_number(name, raw, minimum=0, maximum=maximum, expected=expected)
            for raw in self.values(name)
        )

    def number(self, name: str, *, default: int, minimum: int, maximum: int) -> int:
        raw = self.text(name)
        expected = f"a whole number from {minimum} to {maximum}"
        return (
            default
            if raw is None
            else _parse_number(name, raw, minimum=minimum, maximum=maximum, expected=expected)
        )

    def choice(self, name: str, *, default: str, among: Collection[str]) -> str:
        raw = self.text(name)
        if raw is not None and raw not in among:
            raise invalid_param(name, f"one of {', '.join(among)}")
        return default if raw is None else raw

    def text(self, name: str) -> str | None:
        given = self._query.getlist(name)
        if len(given) > 1:
            raise invalid_param(name, "one value")
        return given[0] if given else None

    def time(self, name: str) -> datetime | None:
        raw = self.text(name)
        return (
            None
            if raw is None
            else _parse(name, raw, parser=_parse_time, expected="an RFC 3339 time with its offset")
        )

    def duration(self, name: str) -> timedelta | None:
        raw = self.text(name)
        return (
            None
            if raw is None
            else _parse(name, raw, parser=_parse_duration, expected="a span as 30m, 1h or 7d")
        )


def invalid_param(name: str, expected: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: expected {expected}", param=name)


def _query(request: HttpRequest) -> QueryDict:
    try:
        return request.GET
    except TooManyFieldsSent:
        raise InvalidRequest("too many query parameters", code="unknown_parameter") from None


def _parse_number(name: str, raw: str, *, minimum: int, maximum: int, expected: str) -> int:
    # isdecimal alone accepts the digits of other scripts, int alone accepts signs, spaces and underscores.
    if not (raw.isascii() and raw.isdecimal() and len(raw) <= len(str(maximum))):
        raise invalid_param(name, expected)
    value = int(raw)
    if not minimum <= value <= maximum:
        raise invalid_param(name, expected)
    return value


def _parse(name: str, raw: str, *, parser: Callable[[str], Value], expected: str) -> Value:
    try:
        return parser(raw)
    except (ValueError, OverflowError):
        raise invalid_param(name, expected) from None


def _parse_list(raw: str) -> list[str]:
    if "\0" in raw:
        raise ValueError
    try:
        return next(csv.reader([raw])) or [""]
    except csv.Error:
        raise ValueError from None


def _parse_time(raw: str) -> datetime:
    found = TIME.fullmatch(raw)
    if not found:
        raise ValueError
    sign = "+" if found["sign"] == " " else found["sign"]
    offset = f"{sign}{found['offset']}" if sign else "+00:00"
    return datetime.fromisoformat(f"{found['day']}T{found['time']}{offset}").astimezone(UTC)


def _parse_duration(raw: str) -> timedelta:
    found = DURATION.fullmatch(raw)
    if not found:
        raise ValueError
    return timedelta(**{DURATION_UNITS[found[2]]: int(found[1])})
