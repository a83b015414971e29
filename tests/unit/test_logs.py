"""A log line tells where something broke, and nothing of what it was about."""

from __future__ import annotations

import json
import logging

import pytest

from relaybatch.logs import JsonFormatter, TextFormatter


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


def test_a_line_is_one_json_object_with_the_ids_that_it_is_about() -> None:
    record = logging.LogRecord("batches", logging.INFO, "f.py", 1, "two\nlines", (), None)
    record.__dict__.update(batch_id="b", attempt=2)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert (line["message"], line["batch_id"], line["attempt"]) == ("two\nlines", "b", "2")
    assert "item_id" not in line
