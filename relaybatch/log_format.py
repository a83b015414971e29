"""Format log lines: one line per event, as JSON or text, with the fields that say what it is about.

Our own loggers write a fixed event name and put everything variable into `extra=`. A record's fields are those in
FIELDS; anything else in `extra=` is not written. Lines of other libraries keep their message.

An exception is written as its types and places, never as its message: a database's message may quote the values of a
row, a library's the headers of a request.
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

# Every field that a log line may have, in the order in which it is written (docs/operating/operations.md).
FIELDS = (
    *("batch_id", "item_id", "attempt", "file_id", "request_id"),
    *("host", "host_key", "status", "reason", "ms", "seconds"),
    *("step", "items", "state", "code", "method", "path", "user"),
)
OUR_LOGGERS = frozenset({"relaybatch", "batches", "routing", "usage", "audit"})

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")

MAX_CAUSES = 10
# Every character that some reader of logs takes for the end of a line.
LINE_BREAKS = re.compile("[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]")


def describe_exception(exception: BaseException) -> str:
    """Types of the exception and its causes, and where it was raised, without any message.

    `KeyError from DataError at file.py:3 inner < file.py:1 outer`.
    """
    kinds: list[str] = []
    cause: BaseException | None = exception
    while cause is not None and len(kinds) < MAX_CAUSES:
        kinds.append(type(cause).__qualname__)
        cause = cause.__cause__ or cause.__context__
    frames = traceback.extract_tb(exception.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{' from '.join(kinds)} at {places}"


def configure(config: dict[str, Any]) -> None:
    """Apply Django's LOGGING, and write Python's warnings as log lines (logger `py.warnings`)."""
    dictConfig(config)
    logging.captureWarnings(True)


def fields_of(record: logging.LogRecord) -> dict[str, str | int | float]:
    """The record's fields that have a value. `request_id` is added to every line written while a request is served."""
    values = {name: getattr(record, name, "") for name in FIELDS} if is_ours(record) else {}
    values["request_id"] = values.get("request_id") or request_id.get()
    return {name: _field_value(value) for name, value in values.items() if value not in ("", None)}


def is_ours(record: logging.LogRecord) -> bool:
    """Whether a logger of ours wrote it. Other libraries put attributes of the same names on their records."""
    return record.name.partition(".")[0] in OUR_LOGGERS


def exception_text(record: logging.LogRecord) -> str:
    return describe_exception(record.exc_info[1]) if record.exc_info and record.exc_info[1] else ""


class TextFormatter(logging.Formatter):
    """`… batch accepted batch_id=… request_id=… KeyError at …`, in one line whatever the message holds."""

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage().strip()
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        fields = [f"{name}={value}" for name, value in fields_of(record).items()]
        parts = [self.formatMessage(record), *fields, exception_text(record)]
        return LINE_BREAKS.sub(_escape, " ".join(part for part in parts if part))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: our own lines have `event`, those of other libraries `message`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event" if is_ours(record) else "message": record.getMessage().strip(),
            **fields_of(record),
        }
        if exception := exception_text(record):
            line["exception"] = exception
        return json.dumps(line, ensure_ascii=True)


def _field_value(value: object) -> str | int | float:
    return value if isinstance(value, int | float) else str(value)


def _escape(line_break: re.Match[str]) -> str:
    return line_break[0].encode("unicode_escape").decode()
