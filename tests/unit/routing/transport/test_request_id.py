"""The upstream's name for a call: which header, and which values count."""

from __future__ import annotations

import pytest
from urllib3 import HTTPHeaderDict

from routing.transport.request_id import upstream_request_id

VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
ODD = ["", " ", "a b", "a\tb", "é", "a\x7f", "a\0", "a\r\nb", "x" * 201]


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({}, ""),
        ({"x-request-id": "req_1"}, "req_1"),
        ({"X-Request-ID": "req_1"}, "req_1"),
        ({"request-id": "req_2"}, "req_2"),
        ({"request-id": "req_2", "x-request-id": "req_1"}, "req_1"),
        ({"x-request-id": " \treq_1\t "}, "req_1"),
        ({"x-request-id": VISIBLE}, VISIBLE),
        ({"x-request-id": "x" * 200}, "x" * 200),
        ({"apim-request-id": "other"}, ""),
    ],
)
def test_the_first_of_two_headers_is_the_id(headers: dict[str, str], found: str) -> None:
    assert upstream_request_id(HTTPHeaderDict(headers)) == found


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_odd_value_counts_as_none(odd: str) -> None:
    assert upstream_request_id(HTTPHeaderDict({"x-request-id": odd})) == ""
    both = HTTPHeaderDict({"x-request-id": odd, "request-id": "req_2"})
    assert upstream_request_id(both) == "req_2"


def test_one_of_two_values_of_a_header_is_no_id() -> None:
    headers = HTTPHeaderDict([("x-request-id", "one"), ("x-request-id", "two")])
    assert upstream_request_id(headers) == ""
