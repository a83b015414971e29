from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from batches.dialects import RELAY
from batches.dialects.body_parser import MAX_UNCHECKED_COMMAS, parse_body
from batches.dialects.detection import detect_dialect
from batches.dialects.results.json_lines import to_single_line
from relaybatch.http.errors import InvalidRequest
from tests.support.calls.request_contexts import request_context

if TYPE_CHECKING:
    from pytest_django import Settings

    from batches.submission.submission import Submission

ITEM = b'{"model":"m","messages":[]}'


def body(*items: bytes, **members: Any) -> bytes:
    rest = json.dumps(members)[1:]
    return b'{"requests":[' + b",".join(items) + b"]" + (b"," if members else b"") + rest.encode()


def read(raw: bytes) -> Submission:
    parsed = parse_body(bytearray(raw))
    return detect_dialect(parsed).parse_submission(parsed, request_context())


def refusal(raw: bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        read(raw)
    return refused.value


@pytest.mark.parametrize(("shape", "kept"), [("anthropic", True), ("openai", False)])
def test_the_version_headers_of_an_anthropic_submission_alone_go_upstream(shape: str, kept: bool) -> None:
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "a-1", "user-agent": "x"}
    submission = RELAY.parse_submission(parse_body(body(ITEM, shape=shape)), request_context(headers=headers))
    del headers["user-agent"]
    assert submission.upstream_headers == (headers if kept else {})


def test_a_submission_keeps_its_items_byte_for_byte_and_has_relays_defaults() -> None:
    odd = b'{ "model":"m", "n":1.0, "model_":"\\u0000" }'
    submission = read(body(ITEM, odd, shape="openai"))
    assert [bytes(request) for request in submission.requests] == [ITEM, odd]
    assert (submission.dialect, submission.shape) == ("relay", "openai")
    assert (submission.max_attempts, submission.on_rate_limit, submission.lifetime_seconds) == (
        1,
        "fail",
        None,
    )
    assert submission.metadata == {}


@pytest.mark.parametrize("shape", ["openai", "openai_responses", "anthropic"])
def test_three_shapes_are_known(shape: str) -> None:
    assert read(body(ITEM, shape=shape)).shape == shape


@pytest.mark.parametrize("shape", ["canonical", "generate", "openai_embeddings", "", "OpenAI", 5, []])
def test_other_shapes_are_refused(shape: Any) -> None:
    refused = refusal(body(ITEM, shape=shape))
    assert (refused.code, refused.param) == ("unknown_shape", "shape")


def test_options_are_taken_over() -> None:
    submission = read(
        body(
            ITEM,
            shape="openai",
            max_attempts=10,
            on_rate_limit="wait",
            expires_in_seconds=60,
            metadata={"k": "v"},
            anything={"an": "SDK sends"},
        )
    )
    assert (submission.max_attempts, submission.on_rate_limit, submission.lifetime_seconds) == (
        10,
        "wait",
        60,
    )
    assert submission.metadata == {"k": "v"}


def test_null_options_are_absent() -> None:
    names = ("max_attempts", "on_rate_limit", "expires_in_seconds", "metadata", "input_file_id")
    submission = read(body(ITEM, shape="openai", **dict.fromkeys(names)))
    assert (submission.max_attempts, submission.metadata) == (1, {})


BAD_OPTIONS: dict[str, list[Any]] = {
    "max_attempts": [0, 11, -1, "3", 1.5, True, 2**70, []],
    "on_rate_limit": ["", "Wait", 1, True],
    "expires_in_seconds": [59, 2_592_001, "60", 1e400],
    "metadata": [
        *([], "x", {"k": 1}, {"k": None}, {"k" * 65: "v"}, {"k": "v" * 513}),
        *({str(n): "v" for n in range(17)}, {"k": "a\0b"}, {"a\0b": "v"}),
    ],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in BAD_OPTIONS for value in BAD_OPTIONS[name]]
)
def test_bad_options_are_named(name: str, value: Any) -> None:
    raw = body(ITEM, shape="openai", **{name: value}).replace(b"Infinity", b"1e400")
    refused = refusal(raw)
    assert (refused.code, refused.param) == ("invalid_field", name)


def test_metadata_at_its_limits_is_fine() -> None:
    metadata = {f"{n:064}": "é" * 512 for n in range(16)}
    assert read(body(ITEM, shape="openai", metadata=metadata)).metadata == metadata


@pytest.mark.parametrize(
    ("item", "param", "problem"),
    [
        (b"null", "requests[1]", "must be an object"),
        (b"5", "requests[1]", "must be an object"),
        (b'"x"', "requests[1]", "must be an object"),
        (b"[]", "requests[1]", "must be an object"),
        (b"{}", "requests[1].model", "is missing"),
        (b'{"params":{"model":"m"}}', "requests[1].model", "sent without `shape`"),
        (
            b'{"model":"m","custom_id":"a","params":{}}',
            "requests[1].params",
            "in conflict with `shape`",
        ),
        (b'{"model":null}', "requests[1].model", "must be a string"),
        (b'{"model":5}', "requests[1].model", "must be a string"),
        (b'{"model":""}', "requests[1].model", "must not be empty"),
        (b'{"model":"a","model":"b"}', "requests[1].model", "more than once"),
        (rb'{"model":"a","mod\u0065l":"b"}', "requests[1].model", "more than once"),
        (b'{"model":5,"model":"b"}', "requests[1].model", "more than once"),
        (b'{"model":"a","Model":"b"}', "requests[1].model", "more than once"),
        (b'{"MODEL":"b","model":"a"}', "requests[1].model", "more than once"),
        (b'{"model":"a","a":{"model":1},"mOdEl":null}', "requests[1].model", "more than once"),
        (rb'{"model":"a","\u004dodel":"b"}', "requests[1].model", "more than once"),
        (rb'{"model":"a","mod\u0045l":"b"}', "requests[1].model", "more than once"),
        (b'{"MODEL":"m"}', "requests[1].model", "is missing"),
        (b'{"Model":"m","MODEL":"m"}', "requests[1].model", "is missing"),
        (b'{"model":"m","stream":true}', "requests[1].stream", "absent, null or false"),
        (b'{"model":"m","stream":"yes"}', "requests[1].stream", "absent, null or false"),
        (b'{"model":"m","stream":0}', "requests[1].stream", "absent, null or false"),
        (b'{"model":"m","stream":1e999}', "requests[1].stream", "absent, null or false"),
    ],
)
@pytest.mark.parametrize("padding", [0, 100_000])
def test_a_bad_item_is_named_with_what_is_wrong(item: bytes, param: str, problem: str, padding: int) -> None:
    """Large items are looked at in another way."""
    if item.endswith(b'"}') and padding:
        item = item[:-1] + b',"z":"' + b"x" * padding + b'"}'
    refused = refusal(body(ITEM, item, shape="openai"))
    assert refused.param == param
    assert refused.message.startswith(f"{param}: ")
    assert problem in refused.message


def test_every_item_with_a_second_model_is_named_whatever_its_case() -> None:
    bad = b'{"model":"m","Model":"other"}'
    refused = refusal(body(bad, ITEM, bad, ITEM, b'{"MODEL":"other","model":"m"}', shape="openai"))
    assert [f"requests[{idx}].model" in refused.message for idx in range(5)] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert refused.http_status == 400


@pytest.mark.parametrize("padding", [0, 100_000])
def test_what_is_no_second_model_of_the_item_itself_is_fine(padding: int) -> None:
    nested = b'{"a":{"Model":1,"model":2},"model":"m","b":"Model","c":["model","MODEL"],"d":"\\"Model\\":","e":"%b"}'
    submission = read(body(nested % (b"x" * padding), shape="openai"))
    assert [bytes(request) for request in submission.requests] == [nested % (b"x" * padding)]


def test_members_of_the_upstreams_own_may_have_any_name() -> None:
    for own in (b'"params":{}', b'"custom_id":"a"'):
        assert len(read(body(b'{"model":"m",' + own + b"}", shape="openai")).requests) == 1


def test_every_bad_item_is_named_in_a_long_list_too() -> None:
    good = b'{"model":"m","n":[' + b",".join([b"1"] * 30) + b"]}"
    items = [good] * (MAX_UNCHECKED_COMMAS // 20)
    items[5] = items[7] = b"null"
    items[9] = b'{"n":[1,2]}'
    message = refusal(body(*items, shape="openai")).message
    assert [f"requests[{idx}]" in message for idx in (5, 7, 9, 6)] == [True, True, True, False]


def test_every_bad_item_is_named() -> None:
    assert refusal(body(b"null", ITEM, b"{}", shape="openai")).message == (
        "requests[0]: must be an object; requests[2].model: is missing."
    )


def test_the_first_hundred_bad_items_are_named_and_the_others_counted() -> None:
    message = refusal(body(*[b"{}"] * 250, shape="openai")).message
    assert "requests[99].model" in message
    assert "requests[100]" not in message
    assert message.endswith("and 150 more.")


@pytest.mark.parametrize(
    "model", ["a/b", "host:model", "a model", "😀", "m" * 300, "\u2028", "\0", "a@b", " "]
)
def test_model_names_are_taken_as_they_are(model: str) -> None:
    assert len(read(body(json.dumps({"model": model}).encode(), shape="openai")).requests) == 1


@pytest.mark.parametrize("stream", [b"false", b"null"])
def test_an_explicit_no_to_streaming_is_fine(stream: bytes) -> None:
    assert read(body(b'{"model":"m","stream":' + stream + b"}", shape="openai")).requests


def test_a_model_deeper_inside_is_no_second_model() -> None:
    assert read(body(b'{"model":"m","x":{"model":"n"},"y":[{"model":1}]}', shape="openai")).requests


@pytest.mark.parametrize(
    ("raw", "code", "param"),
    [
        (b'{"shape":"openai"}', "missing_field", "requests"),
        (b'{"shape":"openai","requests":null}', "missing_field", "requests"),
        (b'{"shape":"openai","requests":{}}', "invalid_field", "requests"),
        (b'{"shape":"openai","requests":[]}', "invalid_field", "requests"),
        (b"{}", "missing_field", "requests"),
        (b'{"requests":[{"model":"m"}]}', "missing_field", "shape"),
        (b'{"shape":null,"requests":[{"model":"m"}]}', "missing_field", "shape"),
        (b'{"shape":"openai","input_file_id":"f"}', "conflicting_fields", "shape"),
        (b'{"requests":[],"input_file_id":"f"}', "conflicting_fields", "requests"),
        (b'{"input_file_id":"file-1"}', "missing_field", "endpoint"),
    ],
)
def test_bodies_of_no_dialect_are_told_what_is_missing_or_in_conflict(
    raw: bytes, code: str, param: str
) -> None:
    refused = refusal(raw)
    assert (refused.code, refused.param) == (code, param)


def test_more_items_than_allowed_are_refused_with_the_limit(settings: Settings) -> None:
    settings.RELAY_BATCH_MAX_ITEMS = 2
    assert len(read(body(ITEM, ITEM, shape="openai")).requests) == 2
    refused = refusal(body(ITEM, ITEM, ITEM, shape="openai"))
    assert (refused.code, refused.param) == ("too_many_items", "requests")
    assert "at most 2" in refused.message


def test_relays_limit_for_a_body_is_the_general_one(settings: Settings) -> None:
    settings.RELAY_MAX_REQUEST_BYTES = 4096
    assert RELAY.max_body_bytes() == 4096


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b'{"a":\r\n1.0,\n\n"b":1e3}', b'{"a":  1.0,  "b":1e3}'),
        ('{"a":"é \u2028 😀\u0085"}'.encode(), rb'{"a":"\u00e9 \u2028 \ud83d\ude00\u0085"}'),
        (rb'{"a":"\n\u0000\ud800"}', rb'{"a":"\n\u0000\ud800"}'),
    ],
)
def test_json_becomes_one_ascii_line_of_the_same_value(text: bytes, line: bytes) -> None:
    assert b"".join(to_single_line(text)) == line
