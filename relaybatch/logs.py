"""Log lines: one JSON object an event, with the ids of what it is about.

An exception is told by its kind and place, never by its message: a database's may quote the values of a row, a
library's the headers of a request.
"""

from __future__ import annotations

import contextvars
import json
import logging
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

IDS = ("batch_id", "item_id", "attempt", "request_id")

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")


MOST_CAUSES = 10


def kind_and_place(exception: BaseException) -> str:
    """`KeyError from DataError at file.py:3 inner < file.py:1 outer`."""
    kinds: list[str] = []
    cause: BaseException | None = exception
    while cause is not None and len(kinds) < MOST_CAUSES:
        kinds.append(type(cause).__qualname__)
        cause = cause.__cause__ or cause.__context__
    frames = traceback.extract_tb(exception.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{' from '.join(kinds)} at {places}"


class TextFormatter(logging.Formatter):
    def formatException(  # noqa: N802 -- logging's name
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        return kind_and_place(ei[1]) if ei[1] is not None else ""


class JsonFormatter(TextFormatter):
    """Ids come from `extra=`; the request's id is added to every line written while it is served."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        ids = {name: getattr(record, name, "") for name in IDS}
        ids["request_id"] = ids["request_id"] or request_id.get()
        line.update({name: str(value) for name, value in ids.items() if value})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)
