"""Invalid JSON is rejected with the reason, the byte and the item; items are split byte for byte."""

from __future__ import annotations

import json

import pytest

from batches.dialects.body_parser import parse_body, split_requests
from relaybatch.http.body.json_scan import MAX_DEPTH, is_too_deep
from relaybatch.http.errors import InvalidRequest


def submission(item: bytes) -> bytearray:
    return bytearray(b'{"shape":"openai","x":[1,{"a":[2]}],"requests":[{"model":"m","a":[3]},' + item + b"]}")


def rejection(body: bytes | bytearray) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as rejected:
        parse_body(bytearray(body))
    assert rejected.value.code == "invalid_json"
    return rejected.value


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"-Infinity", b"nan"])
def test_nan_and_infinity_are_refused_naming_the_item_and_the_byte(value: bytes) -> None:
    rejected = rejection(submission(b'{"model":"m","t":' + value + b"}"))
    assert rejected.param == "requests[1]"
    assert "requests[1], byte" in rejected.message


@pytest.mark.parametrize("half", [rb"\ud800", rb"\udc00", rb"\ud800A", rb"\ud800\u0041", rb"\uD83D"])
@pytest.mark.parametrize("rest", [b"", b',"more":"than enough"'])
def test_half_of_a_surrogate_pair_is_refused_naming_the_item(half: bytes, rest: bytes) -> None:
    rejected = rejection(submission(b'{"model":"m","t":"' + half + b'"' + rest + b"}"))
    assert rejected.param == "requests[1]"
    assert "surrogate" in rejected.message


@pytest.mark.parametrize("text", [rb"\ud83d\ude00", rb"\\ud800", rb"\u0000", "😀\u2028\u2029\u0085".encode()])
def test_whole_pairs_and_other_escapes_are_fine(text: bytes) -> None:
    item = b'{"model":"m","t":"' + text + b'"}'
    assert bytes(split_requests(parse_body(submission(item)), max_items=9)[1]) == item


@pytest.mark.parametrize("wrong", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf0\x9f"])
def test_invalid_utf8_is_refused_naming_the_byte(wrong: bytes) -> None:
    body = submission(b'{"model":"m","t":"' + wrong + b'"}')
    rejected = rejection(body)
    assert rejected.message == f"The body is not valid UTF-8 (byte {body.index(wrong)})."
    assert rejected.param == "requests[1]"


def test_invalid_utf8_is_found_where_a_character_crosses_the_steps_of_the_check() -> None:
    start = (1 << 20) - 2
    rejected = rejection(b'"' + b"x" * (start - 1) + "😀".encode()[:3] + b'"')
    assert f"byte {start}" in rejected.message


def test_utf16_is_named_for_what_it_is() -> None:
    assert "UTF-16" in rejection('{"shape":"openai"}'.encode("utf-16")).message


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_body(bytearray(b'\xef\xbb\xbf{"shape":"openai"}')).has("shape")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b"{}x", "trailing characters (byte 3)"),
        (b'{"a":1', "ends too early"),
        (b'{"a":01}', "invalid number"),
        (b'{"a":1,}', "trailing comma"),
        (b"{'a':1}", "byte 1"),
    ],
)
def test_what_is_no_json_object_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    assert reason in rejection(body).message


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_of_200_levels_is_fine_and_of_20000_is_not(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    fine, deep = (
        b'{"model":"m","t":' + opening * levels + b"1" + closing * levels + b"}" for levels in (200, 20_000)
    )
    assert len(split_requests(parse_body(submission(fine)), max_items=9)) == 2
    assert "nested too deep" in rejection(submission(deep)).message


def test_as_many_levels_as_are_said_are_read() -> None:
    text = b'{"x":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b',"requests":[{"model":"m"}]}'
    assert len(split_requests(parse_body(text), max_items=9)) == 1


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1 << 20])
def test_depth_is_that_outside_of_strings_however_the_text_is_cut(
    monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr("relaybatch.http.body.json_scan.CHUNK_BYTES", step)
    monkeypatch.setattr("relaybatch.http.body.json_scan.MAX_DEPTH", 9)
    strings = [b'"[[["', rb'"\\"', rb'"\"[["', rb'"\\\"{{"', rb'"\\\\"', b'""', rb'"\u005b["', b'"a]]]]"']
    for around in range(3):
        for string in strings:
            inside = b",".join([string, b"[]", b"{}", string, b'{"k":[]}', string])
            deepest = 9 - around
            for levels, too_deep in ((deepest - 2, False), (deepest - 1, True)):
                text = b"[" * levels + inside + b"]" * levels
                assert is_too_deep(text, around=around) == too_deep, (string, levels)


def test_millions_of_brackets_are_measured() -> None:
    text = b'{"x":[' + b"[],{}," * 4_000_000 + b"1]}"
    assert not is_too_deep(text, around=0)
    assert is_too_deep(text[:-2] + b"," + b"[" * 1000 + b"]" * 1000 + b"]}", around=0)


def test_nesting_in_an_ignored_member_is_refused_too() -> None:
    assert "nested too deep" in rejection(b'{"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}").message


def test_depth_is_counted_to_the_level() -> None:
    at_most, deeper = (
        b"[" * levels + b'"[[[\\"[["' + b"]" * levels for levels in (MAX_DEPTH - 2, MAX_DEPTH - 1)
    )
    assert not is_too_deep(at_most, around=2)
    assert is_too_deep(deeper, around=2)
    assert not is_too_deep(json.dumps(["["] * 5000).encode(), around=2)


def test_null_counts_as_absent() -> None:
    wire = parse_body(bytearray(b'{"shape":null,"requests":[],"metadata":{}}'))
    assert [name for name in ("shape", "requests", "metadata", "max_attempts") if wire.has(name)] == [
        "requests",
        "metadata",
    ]


@pytest.mark.parametrize(
    "item",
    [
        b'{"model":"m","n":1180591620717411303424}',
        b'{"model":"m","n":3.14159265358979323846264338327950}',
        b'{"model":"m","n":[1.0,1e3,-0,1e400]}',
        b'{ "model" : "m" , "a":1, "a":2 }',
    ],
)
def test_items_are_cut_out_byte_for_byte(item: bytes) -> None:
    assert bytes(split_requests(parse_body(submission(item)), max_items=9)[1]) == item
