"""`{custom_id, params}` read into a submission: what both collections keep, and what they refuse in which words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from batches.dialects import CHAT, MESSAGES
from batches.dialects.body_parser import MAX_UNCHECKED_COMMAS, parse_body
from batches.dialects.detection import detect_dialect
from relaybatch.http.errors import ApiError, InvalidRequest, TooLarge
from tests.support.calls.request_contexts import request_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_django import Settings

    from batches.dialects import Dialect
    from batches.submission.submission import Submission

BOTH = pytest.mark.parametrize("dialect", [CHAT, MESSAGES], ids=lambda dialect: dialect.name)


def item(custom_id: Any = "a", params: bytes = b'{"model":"m"}') -> bytes:
    return b'{"custom_id":' + json.dumps(custom_id).encode() + b',"params":' + params + b"}"


def body(*items: bytes, more: bytes = b"") -> bytes:
    return b'{"requests":[' + b",".join(items) + b"]" + more + b"}"


def read(dialect: Dialect, raw: bytes, headers: Mapping[str, str] | None = None) -> Submission:
    parsed = parse_body(bytearray(raw))
    if dialect is CHAT:
        assert detect_dialect(parsed) is CHAT
    return dialect.parse_submission(parsed, request_context(headers=headers))


def refusal(dialect: Dialect, raw: bytes) -> ApiError:
    with pytest.raises(ApiError) as refused:
        read(dialect, raw)
    return refused.value


@BOTH
def test_params_are_kept_byte_for_byte_and_the_defaults_are_three_attempts_waiting_and_a_day(
    dialect: Dialect,
) -> None:
    odd = '{ "n":1.0, "big":1180591620717411303424, "t":"\\u0000\u2028\u0085", "n":1e3 }'.encode()
    submission = read(dialect, body(item("a"), item("b", odd)))
    assert [bytes(request) for request in submission.requests] == [b'{"model":"m"}', odd]
    assert list(submission.custom_ids) == ["a", "b"]
    assert (submission.max_attempts, submission.on_rate_limit) == (3, "wait")
    assert submission.lifetime_seconds == 86_400
    assert submission.metadata == {}


def test_each_collection_has_its_shape() -> None:
    assert (read(CHAT, body(item())).dialect, read(CHAT, body(item())).shape) == ("chat", "openai")
    assert (read(MESSAGES, body(item())).dialect, read(MESSAGES, body(item())).shape) == (
        "messages",
        "anthropic",
    )


def test_attempts_are_the_settings(settings: Settings) -> None:
    settings.RELAY_BATCH_MAX_ATTEMPTS = 5
    assert read(CHAT, body(item())).max_attempts == 5


@BOTH
@pytest.mark.parametrize(
    "params",
    [b"{}", b'{"model":"a","model":"b"}', b'{"model":4}', b'{"model":"m","stream":true}', b'{"messages":7}'],
)
def test_what_is_in_params_is_not_looked_at(dialect: Dialect, params: bytes) -> None:
    assert bytes(read(dialect, body(item("a", params))).requests[0]) == params


@BOTH
def test_members_that_nobody_knows_are_ignored(dialect: Dialect) -> None:
    odd = b'{"custom_id":"a","params":{},"url":"/v1/x","method":[1]}'
    assert read(dialect, body(odd, more=b',"metadata":7,"x":{"y":[1e999]}')).custom_ids == ["a"]


@BOTH
@pytest.mark.parametrize(
    ("wrong", "param", "message"),
    [
        (b"null", "requests[1]", "must be an object"),
        (b"7", "requests[1]", "must be an object"),
        (b'"text"', "requests[1]", "must be an object"),
        (b"[]", "requests[1]", "must be an object"),
        (b'{"params":{}}', "requests[1].custom_id", "is missing"),
        (item(None), "requests[1].custom_id", "is missing"),
        (item(5), "requests[1].custom_id", "must be a string"),
        (item(""), "requests[1].custom_id", "must be 1 to"),
        (item("x" * 513), "requests[1].custom_id", "must be 1 to"),
        (item("x" * 100_000), "requests[1].custom_id", "must be 1 to"),
        (item("\0"), "requests[1].custom_id", "must be 1 to"),
        (item("a"), "requests[1].custom_id", "is the same as that of requests[0]"),
        (b'{"custom_id":"\\u0061","params":{}}', "requests[1].custom_id", "is the same as"),
        (b'{"custom_id":"b"}', "requests[1].params", "is missing"),
        (item("b", b"null"), "requests[1].params", "is missing"),
        (item("b", b"[]"), "requests[1].params", "must be an object"),
        (item("b", b'"{}"'), "requests[1].params", "must be an object"),
        (item("b", b"5"), "requests[1].params", "must be an object"),
    ],
)
def test_a_bad_item_is_named_with_what_is_wrong(
    dialect: Dialect, wrong: bytes, param: str, message: str
) -> None:
    refused = refusal(dialect, body(item("a"), wrong, item("c")))
    assert isinstance(refused, InvalidRequest)
    assert refused.param == param
    assert f"{param}: {message}" in refused.message


@pytest.mark.parametrize("custom_id", ["a/b", "a\nb", "a b", "é", "a.b", "x" * 65, "a\n", "😀"])
def test_message_batches_take_fewer_characters_in_a_custom_id(custom_id: str) -> None:
    assert refusal(MESSAGES, body(item(custom_id))).param == "requests[0].custom_id"
    assert read(CHAT, body(item(custom_id))).custom_ids == [custom_id]


@pytest.mark.parametrize("custom_id", ["x" * 64, "A-z_09"])
def test_the_longest_custom_id_of_a_message_batch(custom_id: str) -> None:
    assert read(MESSAGES, body(item(custom_id))).custom_ids == [custom_id]


def test_a_custom_id_is_counted_in_characters_however_they_are_escaped() -> None:
    escaped = b'{"custom_id":"' + rb"\ud83d\ude00" * 512 + b'","params":{}}'
    assert read(CHAT, body(escaped)).custom_ids == ["😀" * 512]


@BOTH
def test_a_hundred_bad_items_are_named_and_the_rest_counted(dialect: Dialect) -> None:
    refused = refusal(dialect, body(*[item(5)] * 250, item("good")))
    assert refused.message.count("must be a string") == 100
    assert refused.message.endswith("; and 150 more.")


@BOTH
def test_missing_members_alone_are_missing_fields(dialect: Dialect) -> None:
    assert refusal(dialect, body(item("a"), b'{"custom_id":"b"}')).code == "missing_field"
    assert refusal(dialect, body(item(5), b'{"custom_id":"b"}')).code == "invalid_field"


@BOTH
@pytest.mark.parametrize(
    ("raw", "code"),
    [(b'{"requests":[]}', "invalid_field"), (b'{"requests":{}}', "invalid_field"), (b"{}", "missing_field")],
)
def test_requests_are_a_list_with_something_in_it(dialect: Dialect, raw: bytes, code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        dialect.parse_submission(parse_body(raw), request_context())
    assert (refused.value.code, refused.value.param) == (code, "requests")


@pytest.mark.parametrize("foreign", ["shape", "input_file_id"])
def test_message_batches_say_which_member_belongs_elsewhere(foreign: str) -> None:
    refused = refusal(MESSAGES, body(item(), more=f',"{foreign}":"openai"'.encode()))
    assert (refused.code, refused.param) == ("conflicting_fields", foreign)


def test_requests_that_hold_no_object_at_all_are_named_one_by_one() -> None:
    refused = refusal(CHAT, body(b"null", b"5"))
    assert "requests[0]: must be an object" in refused.message
    assert "requests[1]: must be an object" in refused.message


@BOTH
def test_more_items_than_allowed_are_refused_with_the_limit(dialect: Dialect, settings: Settings) -> None:
    settings.RELAY_CUSTOM_ID_MAX_ITEMS = 2
    items = [item(str(number)) for number in range(3)]
    assert len(read(dialect, body(*items[:2])).requests) == 2
    refused = refusal(dialect, body(*items))
    assert (refused.code, refused.param) == ("too_many_items", "requests")
    assert "at most 2" in refused.message


@BOTH
@pytest.mark.parametrize(
    ("element", "param", "message"),
    [
        (b"1", "requests[0]", "must be an object"),
        (b"{}", "requests", "more than {split} items; at most 1000 are allowed"),
    ],
)
def test_a_list_of_a_million_little_things_is_refused_before_each_is_looked_at(
    dialect: Dialect, element: bytes, param: str, message: str
) -> None:
    parsed = parse_body(body(*[element] * (MAX_UNCHECKED_COMMAS + 2)))
    # Chat reads up to Relay's limit, which shares its path, for bodies whose `shape` was forgotten.
    split = 50_000 if dialect is CHAT else 1_000
    with pytest.raises(InvalidRequest, match=message.format(split=split)) as refused:
        dialect.parse_submission(parsed, request_context())
    assert refused.value.param == param


@BOTH
def test_many_commas_in_few_items_are_fine(dialect: Dialect) -> None:
    numbers = b'{"model":"m","n":[' + b",".join([b"1"] * MAX_UNCHECKED_COMMAS) + b"]}"
    with_limit = body(item("a", numbers[:90_000].rpartition(b",")[0] + b"]}"), *map(item, "bcdefg"))
    assert len(read(dialect, with_limit).requests) == 7


@pytest.mark.parametrize(
    ("dialect", "error"), [(CHAT, InvalidRequest), (MESSAGES, TooLarge)], ids=["chat", "messages"]
)
def test_items_over_the_limit_are_named_with_it(
    dialect: Dialect, error: type[ApiError], settings: Settings
) -> None:
    settings.RELAY_CUSTOM_ID_MAX_ITEM_BYTES = 100
    exact = b'{"t":"' + b"x" * 92 + b'"}'
    assert read(dialect, body(item("a", exact))).custom_ids == ["a"]
    refused = refusal(dialect, body(item("a", exact), item("b", exact[:-2] + b'x"}')))
    assert type(refused) is error
    assert (refused.code, refused.param) == ("item_too_large", "requests[1].params")
    assert "has 101 bytes; at most 100" in refused.message


@BOTH
def test_depth_inside_of_params_is_measured_from_the_body(dialect: Dialect) -> None:
    fine = b'{"t":' + b"[" * 500 + b"]" * 500 + b"}"
    assert read(dialect, body(item("a", fine))).custom_ids == ["a"]
    deep = b'{"t":' + b"[" * 997 + b"]" * 997 + b"}"
    refused = refusal(dialect, body(item("a", deep)))
    assert refused.code == "invalid_json"
    assert "nested too deep" in refused.message


def test_the_versions_headers_of_a_message_batch_are_kept_and_those_of_a_chat_batch_are_not() -> None:
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "a-1, b-2", "user-agent": "x"}
    assert read(MESSAGES, body(item()), headers).upstream_headers == {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "a-1, b-2",
    }
    assert read(MESSAGES, body(item()), {"anthropic-beta": ""}).upstream_headers == {}
    assert read(CHAT, body(item()), headers).upstream_headers == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("anthropic-version", "x" * 101),
        ("anthropic-beta", "x" * 2001),
        ("anthropic-beta", "é"),
        ("anthropic-beta", "a\tb"),
        ("anthropic-version", "a\r\nx: y"),
    ],
)
def test_an_unreadable_version_header_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(MESSAGES, body(item()), {name: value})
    assert refused.value.param == name


def test_bare_bodies_without_a_shape_are_told_so_also_under_a_host_name_that_is_none_of_ours() -> None:
    def no_origin() -> str:
        raise InvalidRequest("Not a name of ours.", code="unknown_host", param="Host")

    context = replace(request_context(), origin=no_origin)
    with pytest.raises(InvalidRequest) as rejected:
        CHAT.parse_submission(parse_body(bytearray(body(b'{"model":"m"}'))), context)
    assert (rejected.value.code, rejected.value.param) == ("missing_field", "shape")
    with pytest.raises(InvalidRequest, match="Not a name of ours"):
        CHAT.parse_submission(parse_body(bytearray(body(item("a")))), context)
