from __future__ import annotations

import pytest

from routing.adapters import ADAPTERS
from routing.calls.call import NO_REPORTED_USAGE, ReportedUsage, Tokens
from routing.upstream.response_usage import (
    MAX_USAGE_BYTES,
    UnusableResponse,
    usage_of_error,
    usage_of_response,
)

OPENAI = ADAPTERS["openai"]
USAGE = b'{"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.5}'
REPORTED = ReportedUsage(tokens=Tokens(input=3, output=2), upstream_cost_nanos=500_000_000, is_reported=True)


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (b'{"choices": [], "usage": %b}' % USAGE, REPORTED),
        (b'{"choices": []}', NO_REPORTED_USAGE),
        (b'{"choices": [], "usage": null}', NO_REPORTED_USAGE),
        (b'{"choices": [], "usage": {}}', NO_REPORTED_USAGE),
        (b'{"choices": [], "usage": {"prompt_tokens": -1}}', ReportedUsage(is_reported=True)),
        (
            b'{"choices": [], "usage": {"x": "%b"}}' % (b"x" * MAX_USAGE_BYTES),
            ReportedUsage(is_reported=True),
        ),
        (b'{"choices": [], "error": "a warning", "usage": %b}' % USAGE, REPORTED),
        (b'{"error": null, "usage": %b}' % USAGE, REPORTED),
        (b'{"choices": ["\\ud83d"], "usage": %b}' % USAGE, REPORTED),
    ],
)
def test_the_usage_of_a_usable_response(body: bytes, usage: ReportedUsage) -> None:
    assert usage_of_response(body, OPENAI) == usage


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b" \r\n", "empty"),
        (b"<html>", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"choices": "\xff"}', "not UTF-8"),
        (b'{"error": {"message": "no"}}', "an error in place of an answer"),
    ],
)
def test_the_reason_why_a_response_is_unusable(body: bytes, reason: str) -> None:
    with pytest.raises(UnusableResponse) as unusable:
        usage_of_response(body, OPENAI)
    assert unusable.value.reason == reason
    assert unusable.value.usage == NO_REPORTED_USAGE


def test_an_error_may_report_usage_all_the_same() -> None:
    body = b'{"error": "no", "usage": %b}' % USAGE
    with pytest.raises(UnusableResponse) as unusable:
        usage_of_response(body, OPENAI)
    assert unusable.value.usage == usage_of_error(body, OPENAI) == REPORTED


def test_an_error_that_is_no_json_reports_none() -> None:
    assert usage_of_error(b"<html>", OPENAI) == NO_REPORTED_USAGE
