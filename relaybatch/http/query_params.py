"""Query parameters, read strictly: what is unknown, doubled or malformed is a 400 that names it."""

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

SPAN = re.compile(r"([0-9]{1,9})([smhdw])", re.ASCII)
SPAN_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# A `+` that was not percent-encoded arrives as a blank.
TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[Tt ](?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:[Zz]|(?P<sign>[+ -])(?P<offset>\d\d:\d\d))",
    re.ASCII,
)
LIST_FORM = "one or more values, separated by commas, on one line and without NUL"
SHOWN_CHARACTERS = 80
Value = TypeVar("Value")


class Parameters:
    """A request's query. Readers give None or an empty tuple for what is absent, and raise `InvalidRequest`.

    `known` None: other parameters are ignored, as SDKs may add some of their own.
    """

    def __init__(self, request: HttpRequest, *, known: Collection[str] | None) -> None:
        self._query = _query(request)
        unknown = [] if known is None else [name for name in self._query if name not in known]
        if unknown and known is not None:
            unknown = [name[:SHOWN_CHARACTERS] for name in unknown]
            raise InvalidRequest(
                f"unknown parameter: {', '.join(unknown[:10])} (known: {', '.join(sorted(known)) or 'none'})",
                code="unknown_parameter",
                param=unknown[0],
            )

    def words(self, name: str) -> tuple[str, ...]:
        """A list, split at commas; a word in double quotes may hold commas. An empty word stands for itself."""
        given = self._query.getlist(name)
        return tuple(word for value in given for word in _checked(name, value, read=_list, form=LIST_FORM))

    def choices(self, name: str, *, among: Collection[str]) -> tuple[str, ...]:
        words = self.words(name)
        if any(word not in among for word in words):
            raise bad_value(name, f"one or more of {', '.join(among)}")
        return words

    def numbers(self, name: str, *, maximum: int) -> tuple[int, ...]:
        form = f"whole numbers from 0 to {maximum}"
        return tuple(_number(name, word, minimum=0, maximum=maximum, form=form) for word in self.words(name))

    def number(self, name: str, *, default: int, minimum: int, maximum: int) -> int:
        raw = self.text(name)
        form = f"a whole number from {minimum} to {maximum}"
        return default if raw is None else _number(name, raw, minimum=minimum, maximum=maximum, form=form)

    def choice(self, name: str, *, default: str, among: Collection[str]) -> str:
        raw = self.text(name)
        if raw is not None and raw not in among:
            raise bad_value(name, f"one of {', '.join(among)}")
        return default if raw is None else raw

    def text(self, name: str) -> str | None:
        given = self._query.getlist(name)
        if len(given) > 1:
            raise bad_value(name, "one value")
        return given[0] if given else None

    def time(self, name: str) -> datetime | None:
        raw = self.text(name)
        return (
            None if raw is None else _checked(name, raw, read=_time, form="an RFC 3339 time with its offset")
        )

    def span(self, name: str) -> timedelta | None:
        raw = self.text(name)
        return None if raw is None else _checked(name, raw, read=_span, form="a span as 30m, 1h or 7d")


def bad_value(name: str, form: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: expected {form}", param=name)


def _query(request: HttpRequest) -> QueryDict:
    try:
        return request.GET
    except TooManyFieldsSent:
        raise InvalidRequest("too many query parameters", code="unknown_parameter") from None


def _number(name: str, raw: str, *, minimum: int, maximum: int, form: str) -> int:
    # isdecimal alone would take the digits of other scripts, int alone signs, blanks and underscores.
    if not (raw.isascii() and raw.isdecimal() and len(raw) <= len(str(maximum))):
        raise bad_value(name, form)
    value = int(raw)
    if not minimum <= value <= maximum:
        raise bad_value(name, form)
    return value


def _checked(name: str, raw: str, *, read: Callable[[str], Value], form: str) -> Value:
    try:
        return read(raw)
    except (ValueError, OverflowError):
        raise bad_value(name, form) from None


def _list(raw: str) -> list[str]:
    if "\0" in raw:
        raise ValueError
    try:
        return next(csv.reader([raw])) or [""]
    except csv.Error:
        raise ValueError from None


def _time(raw: str) -> datetime:
    found = TIME.fullmatch(raw)
    if not found:
        raise ValueError
    sign = "+" if found["sign"] == " " else found["sign"]
    offset = f"{sign}{found['offset']}" if sign else "+00:00"
    return datetime.fromisoformat(f"{found['day']}T{found['time']}{offset}").astimezone(UTC)


def _span(raw: str) -> timedelta:
    found = SPAN.fullmatch(raw)
    if not found:
        raise ValueError
    return timedelta(**{SPAN_UNITS[found[2]]: int(found[1])})
