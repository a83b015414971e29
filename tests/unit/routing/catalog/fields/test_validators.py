from __future__ import annotations

import pytest

from routing.catalog.fields import validators


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("2.50", 2_500_000_000),
        ("0", 0),
        ("0.000000001", 1),
        ("10", 10_000_000_000),
        ("1.0000000000000", 1_000_000_000),
        ("9223372036.854775807", 2**63 - 1),
        ("0.1", 100_000_000),
    ],
)
def test_an_amount_is_exact(text: str, nanos: int) -> None:
    assert validators.nanos(text) == nanos


NO_AMOUNTS = [
    "",
    "-1",
    "+1",
    "1e3",
    ".5",
    "5.",
    "NaN",
    ".inf",
    "1,5",
    "0x10",
    "010",
    "1_000",
    "٣",
    "1:30",
    " 1",
]
TOO_FINE_OR_LARGE = ["0.0000000001", f"0.{'0' * 39}1", "9223372037", "1" * 100]


@pytest.mark.parametrize("text", [*NO_AMOUNTS, *TOO_FINE_OR_LARGE])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected an amount"):
        validators.nanos(text)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://api.openai.com", "https://api.openai.com"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/a/b", "http://[::1]:8080/a/b"),
    ],
)
def test_a_base_url_loses_the_slash_at_its_end(text: str, url: str) -> None:
    assert validators.base_url(text) == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ftp://example.com", "starts with http:// or https://"),
        ("api.openai.com", "starts with http:// or https://"),
        ("https://", "starts with http:// or https://"),
        ("file:///etc/passwd", "starts with http:// or https://"),
        ("https://user:hunter2@example.com", "without credentials"),
        ("https://hunter2@example.com", "without credentials"),
        ("https://example.com/?key=hunter2", "without \\? and #"),
        ("https://example.com?", "without \\? and #"),
        ("https://example.com/#", "without \\? and #"),
        ("https://example.com:99999", "a port from 0 to 65535"),
        ("https://example.com:x", "a port from 0 to 65535"),
        ("https://[::1", "expected a URL"),
        ("https://exa mple.com", "without blanks"),
        ("https://exämple.com", "ASCII"),
        ("https://example.com/" + "x" * 500, "at most 500"),
    ],
)
def test_a_wrong_base_url_is_refused_and_not_repeated(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as rejected:
        validators.base_url(text)
    assert "hunter2" not in str(rejected.value)


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("500", 500), ("50_000", 50_000)])
def test_whole_numbers(text: str, number: int) -> None:
    assert validators.integer(text, minimum=0, maximum=50_000) == number


@pytest.mark.parametrize("text", ["-1", "1.0", "0x1", "010", "1e3", "50001", "1:30", "9" * 5000])
def test_other_numbers_are_refused_with_the_range(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number from 0 to 50000"):
        validators.integer(text, minimum=0, maximum=50_000)
