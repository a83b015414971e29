"""Log lines: one an event, as JSON or text, with the ids of what it is about.

An exception is told by its kind and place, never by its message: a database's may quote the values of a row, a
library's the headers of a request.
"""

from __future__ import annotations

import contextvars
import json
import logging
import re
import traceback
from datetime import UTC, datetime
from logging.config import dictConfig
from typing import Any

IDS = ("batch_id", "item_id", "attempt", "request_id")
# What a line says of a host key, besides.
DETAILS = (
    *("host", "host_key", "status", "reason", "ms", "seconds"),
    *("step", "items", "state", "code", "method", "path"),
)

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")


MAX_CAUSES = 10
# All that some reader takes for the end of a line.
LINE_BREAKS = re.compile("[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]")


def describe_exception(exception: BaseException) -> str:
    """`KeyError from DataError at file.py:3 inner < file.py:1 outer`."""
    kinds: list[str] = []
    cause: BaseException | None = exception
    while cause is not None and len(kinds) < MAX_CAUSES:
        kinds.append(type(cause).__qualname__)
        cause = cause.__cause__ or cause.__context__
    frames = traceback.extract_tb(exception.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{' from '.join(kinds)} at {places}"


def configure(config: dict[str, Any]) -> None:
    """Django's LOGGING, and Python's warnings as lines like all others."""
    dictConfig(config)
    logging.captureWarnings(True)


def fields_of(record: logging.LogRecord) -> dict[str, str]:
    """Those that are there. They come from `extra=`; the request's is on every line written while it is served."""
    ids = {name: getattr(record, name, "") for name in (*IDS, *DETAILS)}
    ids["request_id"] = ids["request_id"] or request_id.get()
    return {name: str(value) for name, value in ids.items() if value}


def exception_text(record: logging.LogRecord) -> str:
    return describe_exception(record.exc_info[1]) if record.exc_info and record.exc_info[1] else ""


class TextFormatter(logging.Formatter):
    """`… message batch_id=… request_id=… KeyError at …`, in one line whatever the message holds."""

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage().strip()
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        ids = [f"{name}={value}" for name, value in fields_of(record).items()]
        parts = [self.formatMessage(record), *ids, exception_text(record)]
        return LINE_BREAKS.sub(_escaped, " ".join(part for part in parts if part))


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage().strip(),
            **fields_of(record),
        }
        if exception := exception_text(record):
            line["exception"] = exception
        return json.dumps(line, ensure_ascii=True)


def _escaped(line_break: re.Match[str]) -> str:
    return line_break[0].encode("unicode_escape").decode()
