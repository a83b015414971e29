"""A log line tells where something broke, and nothing of what it was about."""

from __future__ import annotations

import json
import logging

import pytest

from relaybatch.log_format import JsonFormatter, TextFormatter, request_id


def fail() -> None:
    try:
        int("the prompt")
    except ValueError as error:
        raise RuntimeError("the answer") from error


def record_of(message: str) -> logging.LogRecord:
    try:
        fail()
    except RuntimeError as error:
        info = (type(error), error, error.__traceback__)
    return logging.LogRecord("batches", logging.ERROR, "f.py", 1, message, (), info)


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_an_exception_is_told_by_kind_and_place_without_its_message(formatter: logging.Formatter) -> None:
    line = formatter.format(record_of("broke off"))
    assert "RuntimeError from ValueError at" in line
    assert "record_of" in line
    assert "the prompt" not in line
    assert "the answer" not in line


def record_with(message: str, **ids: object) -> logging.LogRecord:
    record = logging.LogRecord("batches", logging.INFO, "f.py", 1, message, (), None)
    record.__dict__.update(ids)
    return record


def test_a_text_line_ends_with_the_ids_that_it_is_about() -> None:
    text = TextFormatter("%(levelname)s %(name)s %(message)s")
    assert text.format(record_with("item failed", batch_id="b", attempt=2, item_id="")) == (
        "INFO batches item failed batch_id=b attempt=2"
    )
    assert text.format(record_with("started")) == "INFO batches started"


def test_a_line_about_a_host_key_says_which_and_how_it_answered() -> None:
    about = {"host": "openai", "host_key": "main", "status": "401", "seconds": 60}
    line = TextFormatter().format(record_with("opened", **about))
    assert line == "opened host=openai host_key=main status=401 seconds=60"
    assert json.loads(JsonFormatter().format(record_with("opened", **about)))["host_key"] == "main"


def test_a_text_line_carries_the_id_of_the_request_that_is_served() -> None:
    token = request_id.set("req_1")
    try:
        line = TextFormatter().format(record_with("accepted", batch_id="b"))
    finally:
        request_id.reset(token)
    assert line == "accepted batch_id=b request_id=req_1"


@pytest.mark.parametrize(
    ("ends", "escaped"),
    [("\n", "\\n"), ("\r\n", "\\r\\n"), ("\x0b", "\\x0b"), ("\x85", "\\x85"), ("\u2028", "\\u2028")],
)
def test_a_text_line_is_one_line_whatever_its_message_holds(ends: str, escaped: str) -> None:
    line = TextFormatter().format(record_with(f"one{ends}forged", batch_id=f"b{ends}2"))
    assert line == f"one{escaped}forged batch_id=b{escaped}2"
    assert len(line.splitlines()) == 1


def test_a_text_line_of_an_exception_is_one_line_with_its_ids() -> None:
    record = record_of("broke off")
    record.exc_text = "Traceback that another handler has written: the prompt"
    record.__dict__.update(item_id="i")
    line = TextFormatter().format(record)
    assert line.startswith("broke off item_id=i RuntimeError from ValueError at ")
    assert len(line.splitlines()) == 1
    assert "the prompt" not in line


def test_a_line_is_one_json_object_with_the_ids_that_it_is_about() -> None:
    record = logging.LogRecord("batches", logging.INFO, "f.py", 1, "two\nlines", (), None)
    record.__dict__.update(batch_id="b", attempt=2)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert (line["message"], line["batch_id"], line["attempt"]) == ("two\nlines", "b", "2")
    assert "item_id" not in line
