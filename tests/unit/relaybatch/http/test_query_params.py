"""Query parameters are parsed strictly; an error names the parameter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.test import RequestFactory

from relaybatch.http.errors import InvalidRequest
from relaybatch.http.query_params import QueryParams

if TYPE_CHECKING:
    from collections.abc import Callable

STATES = ("open", "closed")


def params(query: str, *, known: tuple[str, ...] | None = ("p",)) -> QueryParams:
    return QueryParams(RequestFactory().get(f"/v1/usage/events?{query}"), known=known)


def error_of(read: Callable[[], object]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as rejected:
        read()
    return rejected.value


def test_an_absent_parameter_is_none_or_empty_or_the_default() -> None:
    absent = params("")
    assert (absent.text("p"), absent.time("p"), absent.duration("p")) == (None, None, None)
    assert (absent.values("p"), absent.choices("p", among=STATES), absent.numbers("p", maximum=9)) == (
        (),
        (),
        (),
    )
    assert absent.number("p", default=7, minimum=1, maximum=9) == 7
    assert absent.choice("p", default="open", among=STATES) == "open"


def test_an_unknown_parameter_is_rejected_by_name_and_the_known_ones_are_listed() -> None:
    error = error_of(lambda: params("p=1&q=2&r=3", known=("p", "a")))
    assert (error.code, error.param) == ("unknown_parameter", "q")
    assert error.message == "unknown parameter: q, r (known: a, p)"


def test_only_part_of_a_long_unknown_name_is_repeated() -> None:
    error = error_of(lambda: params("x" * 500 + "=1", known=()))
    assert error.message == f"unknown parameter: {'x' * 80} (known: none)"


def test_unknown_parameters_may_be_ignored() -> None:
    assert params("q=2&p=1", known=None).text("p") == "1"


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("p=a", ("a",)),
        ("p=a,b", ("a", "b")),
        ("p=a&p=b,c", ("a", "b", "c")),
        ("p=", ("",)),
        ("p=a,,b", ("a", "", "b")),
        ("p=%22a,b%22,c", ("a,b", "c")),
        ("p=%22a%20%22%22b%22%22%22", ('a "b"',)),
    ],
)
def test_values_are_split_at_commas_outside_of_quotes(query: str, values: tuple[str, ...]) -> None:
    assert params(query).values("p") == values


@pytest.mark.parametrize("value", ["a%00b", "a%0Ab"])
def test_a_list_is_one_line_without_nul(value: str) -> None:
    error = error_of(lambda: params(f"p={value}").values("p"))
    assert error.message.startswith("p: expected one or more values")
    assert error.param == "p"


def test_choices_are_among_the_known_ones() -> None:
    assert params("p=closed,open").choices("p", among=STATES) == ("closed", "open")
    assert params("p=closed").choice("p", default="open", among=STATES) == "closed"
    assert error_of(lambda: params("p=open,x").choices("p", among=STATES)).message == (
        "p: expected one or more of open, closed"
    )
    assert error_of(lambda: params("p=x").choice("p", default="open", among=STATES)).message == (
        "p: expected one of open, closed"
    )


@pytest.mark.parametrize(("raw", "number"), [("1", 1), ("9", 9), ("5", 5)])
def test_a_number_within_its_limits_is_read(raw: str, number: int) -> None:
    assert params(f"p={raw}").number("p", default=7, minimum=1, maximum=9) == number


@pytest.mark.parametrize(
    "raw", ["0", "10", "", "+5", "-5", "5.0", "5_0", "%205", "0x5", "%D9%A5", "1" * 5000]
)
def test_anything_else_is_no_number(raw: str) -> None:
    error = error_of(lambda: params(f"p={raw}").number("p", default=7, minimum=1, maximum=9))
    assert error.message == "p: expected a whole number from 1 to 9"


def test_numbers_are_a_list_from_zero() -> None:
    assert params("p=0,3&p=9").numbers("p", maximum=9) == (0, 3, 9)
    assert error_of(lambda: params("p=3,x").numbers("p", maximum=9)).message == (
        "p: expected whole numbers from 0 to 9"
    )


@pytest.mark.parametrize("read", ["text", "time", "duration"])
def test_a_parameter_with_one_value_may_not_be_repeated(read: str) -> None:
    error = error_of(lambda: getattr(params("p=1&p=1"), read)("p"))
    assert error.message == "p: expected one value"


@pytest.mark.parametrize(
    ("raw", "time"),
    [
        ("2026-02-28T12:30:00Z", datetime(2026, 2, 28, 12, 30, tzinfo=UTC)),
        ("2026-02-28t12:30:00z", datetime(2026, 2, 28, 12, 30, tzinfo=UTC)),
        ("2026-02-28%2012:30:00Z", datetime(2026, 2, 28, 12, 30, tzinfo=UTC)),
        ("2026-02-28T12:30:00.25Z", datetime(2026, 2, 28, 12, 30, 0, 250_000, tzinfo=UTC)),
        ("2026-02-28T12:30:00%2B02:00", datetime(2026, 2, 28, 10, 30, tzinfo=UTC)),
        # The `+` was not percent-encoded.
        ("2026-02-28T12:30:00+02:00", datetime(2026, 2, 28, 10, 30, tzinfo=UTC)),
        ("2026-02-28T12:30:00-02:00", datetime(2026, 2, 28, 14, 30, tzinfo=UTC)),
    ],
)
def test_a_time_with_its_offset_is_read_as_utc(raw: str, time: datetime) -> None:
    assert params(f"p={raw}").time("p") == time


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "now",
        "2026-02-28",
        "2026-02-28T12:30:00",
        "2026-02-30T12:30:00Z",
        "2026-02-28T25:30:00Z",
        "0001-01-01T00:00:00%2B01:00",
        "2026-02-28T12:30:00Zx",
    ],
)
def test_anything_else_is_no_time(raw: str) -> None:
    error = error_of(lambda: params(f"p={raw}").time("p"))
    assert error.message == "p: expected an RFC 3339 time with its offset"


@pytest.mark.parametrize(
    ("raw", "duration"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("1h", timedelta(hours=1)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_duration_has_a_number_and_a_unit(raw: str, duration: timedelta) -> None:
    assert params(f"p={raw}").duration("p") == duration


@pytest.mark.parametrize("raw", ["", "1", "h", "1y", "-1h", "1.5h", "1h30m", "999999999w"])
def test_anything_else_is_no_duration(raw: str) -> None:
    error = error_of(lambda: params(f"p={raw}").duration("p"))
    assert error.message == "p: expected a span as 30m, 1h or 7d"


def test_too_many_parameters_are_rejected() -> None:
    error = error_of(lambda: params("&".join(f"p{number}=1" for number in range(2000))))
    assert error.message == "too many query parameters"
