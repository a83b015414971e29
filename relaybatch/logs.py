"""Log lines: one JSON object an event, with the ids of what it is about."""

from __future__ import annotations

import contextvars
import json
import logging
from datetime import UTC, datetime

IDS = ("batch_id", "item_id", "attempt", "request_id")

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")


class JsonFormatter(logging.Formatter):
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
