"""Finding the top-level members of a JSON object without reading it into values."""

from __future__ import annotations

import json
import time

import pytest

from routing.top_level import has_one_model, members, with_model


def spans(body: bytes) -> list[tuple[str, bytes]]:
    return [(member.key, body[member.value_start : member.value_end]) for member in members(body)]


def test_each_member_is_found_with_the_bytes_of_its_value() -> None:
    body = b' {"a" : 1.0 ,"b":[{"model":"x"},"]"],\t"c":{"d":"}\\""} , "e":null,"f":"\\\\" }\n'

    assert spans(body) == [
        ("a", b"1.0"),
        ("b", b'[{"model":"x"},"]"]'),
        ("c", b'{"d":"}\\""}'),
        ("e", b"null"),
        ("f", b'"\\\\"'),
    ]


def test_the_key_span_is_the_key_as_written() -> None:
    body = b'{ "\\u006dodel" : 1}'
    (member,) = members(body)

    assert member.key == "model"
    assert body[member.key_start : member.key_end] == b'"\\u006dodel"'


def test_an_empty_object_has_no_members() -> None:
    assert spans(b" { } ") == []


def test_a_key_that_is_a_lone_surrogate_is_read() -> None:
    assert [key for key, _ in spans(b'{"\\ud800":1}')] == ["\ud800"]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"1", b'"model"', b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":[1}', b'{"a":1,}', b"{a:1}"],
)
def test_what_is_no_object_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        list(members(body))


@pytest.mark.parametrize(
    ("body", "one"),
    [
        (b'{"model":"x"}', True),
        (b'{"model":"x","messages":[{"model":"y"}]}', True),
        (b'{"model":"x","a":"model"}', True),
        (b'{"model":"x","model":"y"}', False),
        (b'{"model":"x","\\u006dodel":"y"}', False),
        (b'{"m\\u006Fdel":"x","mode\\u006c":"y"}', False),
        (b'{"\\u006dodel":"x"}', True),
        (b'{"model":"x","text":"\\u006d \\u00e9 \\"model\\""}', True),
        (b'{"model":"x","text":"\\\\u006dodel"}', True),
    ],
)
def test_two_models_are_told_in_any_spelling(body: bytes, one: bool) -> None:
    assert has_one_model(body) is one


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"x"}', b'{"model":"up/1"}'),
        (b'{"a":{"model":"x"}, "model" :  "x" ,"b":1e3}', b'{"a":{"model":"x"}, "model" :  "up/1" ,"b":1e3}'),
        (
            b'{"\\u006dodel":"x\\"y","n":123456789012345678901234567890}',
            b'{"\\u006dodel":"up/1","n":123456789012345678901234567890}',
        ),
        ('{"t":"\u2028\\u0000","model":"x"}'.encode(), '{"t":"\u2028\\u0000","model":"up/1"}'.encode()),
    ],
)
def test_only_the_value_of_the_top_level_model_is_replaced(body: bytes, expected: bytes) -> None:
    assert with_model(body, "up/1") == expected


def test_an_upstream_name_is_written_as_json() -> None:
    assert json.loads(with_model(b'{"model":"x"}', 'a"b\\é\u2028')) == {"model": 'a"b\\é\u2028'}


def test_replacing_a_model_that_is_not_there_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no model"):
        with_model(b'{"a":{"model":1}}', "x")


def test_depth_costs_no_stack() -> None:
    body = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b',"model":"x"}'

    assert with_model(body, "y").endswith(b',"model":"y"}')


@pytest.mark.parametrize("piece", [b"A", b"\\n", b'\\"', b"\\\\"])
def test_ten_megabytes_in_one_string_are_passed_over_in_one_go(piece: bytes) -> None:
    body = b'{"a":[{"b":"' + piece * (10_000_000 // len(piece)) + b'"}],"model":"x"}'
    started = time.monotonic()

    assert with_model(body, "y").endswith(b'"model":"y"}')
    assert time.monotonic() - started < 2, "seeking byte by byte, or back, takes minutes"
