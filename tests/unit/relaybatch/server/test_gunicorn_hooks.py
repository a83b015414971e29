"""gunicorn's own log lines and responses repeat nothing of a request."""

from __future__ import annotations

import json
import logging
import os
import socket
from typing import Any

import pytest
from gunicorn import util

from relaybatch.server.gunicorn_hooks import RedactRequest, gunicorn_logging, use_json_errors


def filtered(message: str, *arguments: object) -> str:
    record = logging.LogRecord("gunicorn.error", logging.WARNING, "f.py", 1, message, arguments, None)
    assert RedactRequest().filter(record)
    return record.getMessage()


def test_an_invalid_request_is_logged_by_the_type_of_the_error() -> None:
    try:
        os.environ["SECRET_THAT_IS_NOT_SET"]
    except KeyError:
        line = filtered("Invalid request from ip=127.0.0.1: Invalid HTTP Header: 'secret'")
    assert line == "Invalid request from ip=127.0.0.1: KeyError"


def test_a_request_that_failed_is_logged_without_its_query() -> None:
    assert filtered("Error handling request %s", "/v1/batches?key=secret") == (
        "Error handling request /v1/batches"
    )


def test_other_lines_are_unchanged() -> None:
    assert filtered("Listening at: %s", "http://127.0.0.1:80?") == "Listening at: http://127.0.0.1:80?"


def test_gunicorn_uses_djangos_handlers_and_our_filter() -> None:
    django_logging = {"version": 1, "handlers": {"stderr": {}}, "loggers": {"celery": {"level": "WARNING"}}}
    config = gunicorn_logging(django_logging)
    assert config["handlers"] == django_logging["handlers"]
    assert set(config["loggers"]) == {"celery", "gunicorn.error"}
    (name,) = config["loggers"]["gunicorn.error"]["filters"]
    assert config["filters"][name] == {"()": RedactRequest}


@pytest.mark.parametrize(
    ("status", "reason", "sent", "code"),
    [
        (400, "Bad Request", "400 Bad Request", "bad_request"),
        (431, "Request Header Fields Too Large", "431 Request Header Fields Too Large", "bad_request"),
        (501, "Not Implemented", "400 Bad Request", "bad_request"),
        (500, "Internal Server Error", "500 Internal Server Error", "internal_error"),
    ],
)
def test_an_error_of_gunicorn_is_json(
    monkeypatch: pytest.MonkeyPatch, status: int, reason: str, sent: str, code: str
) -> None:
    monkeypatch.setattr(util, "write_error", util.write_error)  # restored afterwards
    use_json_errors()
    near, far = socket.socketpair()
    with near, far:
        util.write_error(near, status, reason, "the secret header")
        head, _, body = far.recv(65_536).partition(b"\r\n\r\n")
    answer: dict[str, Any] = json.loads(body)
    assert head.startswith(f"HTTP/1.1 {sent}\r\n".encode())
    assert answer["error"]["code"] == code
    assert f"request-id: {answer['request_id']}".encode() in head
    assert b"secret" not in head + body
