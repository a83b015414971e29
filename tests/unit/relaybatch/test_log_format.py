"""A log line has a fixed event and known fields, says where an exception was raised, and never quotes its message."""

from __future__ import annotations

import json
import logging

import pytest

from relaybatch.log_format import FIELDS, JsonFormatter, TextFormatter, fields_of, request_id


def fail() -> None:
    try:
        int("the prompt")
    except ValueError as error:
        raise RuntimeError("the answer") from error


def record_of_failure(message: str) -> logging.LogRecord:
    try:
        fail()
    except RuntimeError as error:
        info = (type(error), error, error.__traceback__)
    return logging.LogRecord("batches", logging.ERROR, "f.py", 1, message, (), info)


def record_with(message: str, *, logger: str = "batches.tasks", **fields: object) -> logging.LogRecord:
    record = logging.LogRecord(logger, logging.INFO, "f.py", 1, message, (), None)
    record.__dict__.update(fields)
    return record


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_an_exception_is_written_as_types_and_places_without_its_message(
    formatter: logging.Formatter,
) -> None:
    line = formatter.format(record_of_failure("attempt failed"))
    assert "RuntimeError from ValueError at" in line
    assert "record_of_failure" in line
    assert "the prompt" not in line
    assert "the answer" not in line


def test_a_text_line_ends_with_its_fields() -> None:
    text = TextFormatter("%(levelname)s %(name)s %(message)s")
    assert text.format(record_with("item finished", batch_id="b", attempt=2, item_id="")) == (
        "INFO batches.tasks item finished batch_id=b attempt=2"
    )
    assert text.format(record_with("started")) == "INFO batches.tasks started"


def test_a_line_about_a_host_key_says_which_and_how_it_answered() -> None:
    record = record_with("breaker opened", host="openai", host_key="main", status=401, seconds=60)
    assert TextFormatter().format(record) == (
        "breaker opened host=openai host_key=main status=401 seconds=60"
    )
    assert json.loads(JsonFormatter().format(record))["host_key"] == "main"


def test_a_text_line_carries_the_id_of_the_request_that_is_served() -> None:
    token = request_id.set("req_1")
    try:
        line = TextFormatter().format(record_with("batch accepted", batch_id="b"))
    finally:
        request_id.reset(token)
    assert line == "batch accepted batch_id=b request_id=req_1"


@pytest.mark.parametrize(
    ("ends", "escaped"),
    [("\n", "\\n"), ("\r\n", "\\r\\n"), ("\x0b", "\\x0b"), ("\x85", "\\x85"), ("\u2028", "\\u2028")],
)
def test_a_text_line_is_one_line_whatever_its_message_holds(ends: str, escaped: str) -> None:
    line = TextFormatter().format(record_with(f"one{ends}forged", batch_id=f"b{ends}2"))
    assert line == f"one{escaped}forged batch_id=b{escaped}2"
    assert len(line.splitlines()) == 1


def test_a_text_line_of_an_exception_is_one_line_with_its_fields() -> None:
    record = record_of_failure("attempt failed")
    record.exc_text = "Traceback that another handler has written: the prompt"
    record.__dict__.update(item_id="i")
    line = TextFormatter().format(record)
    assert line.startswith("attempt failed item_id=i RuntimeError from ValueError at ")
    assert len(line.splitlines()) == 1
    assert "the prompt" not in line


def test_a_json_line_is_one_object_with_event_and_fields() -> None:
    text = JsonFormatter().format(record_with("two\nlines", batch_id="b", attempt=2))
    assert "\n" not in text
    line = json.loads(text)
    assert (line["event"], line["batch_id"], line["attempt"]) == ("two\nlines", "b", 2)
    assert "item_id" not in line
    assert "message" not in line


@pytest.mark.parametrize(
    "logger", ["celery.worker", "gunicorn.error", "py.warnings", "django.request", "root"]
)
def test_a_line_of_a_library_has_a_message_and_none_of_our_fields(logger: str) -> None:
    record = record_with("%d tries", logger=logger, status="secret", path="/secret")
    record.args = (3,)
    line = json.loads(JsonFormatter().format(record))
    assert line["message"] == "3 tries"
    assert not {"event", *FIELDS} & line.keys()


def test_zero_is_a_value_and_an_unknown_field_is_not_written() -> None:
    assert fields_of(record_with("x", items=0, ms=0, prompt="secret", reason=None)) == {"ms": 0, "items": 0}
