"""Find the message in an upstream's error body, wherever its vendor puts it, also in a truncated one.

Known forms: `{"error": {"message", "type"}}` (OpenAI, Anthropic, xAI), the same in a list (Gemini),
`{"error": "…"}` (TGI, Ollama), `{"message": "…"}` (Cohere, vLLM; AWS also `Message`), `{"detail": …}` as a string or
a list of `{loc, msg}` (FastAPI), the latter within `message` (Mistral), `{"errors": [{"message"}]}` (Cloudflare).
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MESSAGE_CHARACTERS = 2000
MAX_TEXT_CHARACTERS = 500
# Twice the levels of the deepest form: a gateway may wrap the error of its own upstream.
MAX_LEVELS = 10

# In order of preference: the first with any text is the message.
_MESSAGE_KEYS = ("error", "message", "detail", "errors", "msg", "Message")
_TRAILING_SURROGATE = re.compile("[\ud800-\udbff]$")
# A string as far as it is complete: the text may have been cut in the middle of an escape.
_TOKEN = re.compile(r'"(?:[^"\\]+|\\u[0-9a-fA-F]{4}|\\[^u])*(")?|[][{},]', re.DOTALL)
_MAX_PARTIAL_ESCAPE = len(r"\u000")


@dataclass(frozen=True, slots=True)
class UpstreamError:
    """`message` is empty where none is found. `text`: the beginning of the body; `plain_text`: the same, but empty for
    markup and JSON. `types`: all that the body names, the nearest to the message first.
    """

    message: str
    text: str
    plain_text: str
    types: tuple[str, ...]
    request_id: str | None


def parse_upstream_error(body: bytes) -> UpstreamError:
    """Parse the first 4 KiB of an error body. Never raises; every string can be encoded as UTF-8."""
    text = body.decode(errors="replace").removeprefix("\ufeff").strip()
    value = _parse_json(text)
    objects = list(_iterate_objects(value))
    ids = [_clean_text(found.get("request_id")) for found in objects]
    beginning = text[:MAX_TEXT_CHARACTERS]
    return UpstreamError(
        message=_find_message(value)[:MAX_MESSAGE_CHARACTERS],
        text=beginning,
        plain_text="" if text.startswith(("<", "{", "[")) else beginning,
        types=tuple(filter(None, (_clean_text(found.get("type")) for found in objects))),
        request_id=next(filter(None, reversed(ids)), None),
    )


def _parse_json(text: str) -> Any:
    """The value, also of truncated JSON; None for anything else."""
    if not text.startswith(("{", "[", '"')):
        return None
    with contextlib.suppress(RecursionError):
        for whole in (text, *_close_truncated(text)):
            with contextlib.suppress(ValueError):
                return json.loads(whole, strict=False)
    return None


def _close_truncated(text: str) -> Iterator[str]:
    """Yield the truncated text closed in two ways: with the value that it was cut in, and without."""
    end, closing, within = 0, "", ""
    for found in _TOKEN.finditer(text):
        mark = found[0]
        if mark in ("]", "}"):
            within = within[1:]
        elif mark in ("[", "{"):
            within = ("]" if mark == "[" else "}") + within
            end, closing = found.end(), within
        elif mark == ",":
            end, closing = found.start(), within
        elif not found[1] and len(text) - found.end() <= _MAX_PARTIAL_ESCAPE:
            yield f'{text[: found.end()]}"{within}'
    yield text + within
    yield text[:end] + closing


def _find_message(value: Any, *, levels: int = MAX_LEVELS) -> str:
    """The first member of an object that has a message; the messages of all entries of a list."""
    if isinstance(value, str):
        return _clean_text(value)
    if levels and isinstance(value, dict):
        return next(
            filter(None, (_find_message(part, levels=levels - 1) for part in _message_members(value))), ""
        )
    if levels and isinstance(value, list):
        return "; ".join(filter(None, (_find_message(part, levels=levels - 1) for part in value)))
    return ""


def _iterate_objects(value: Any, *, levels: int = MAX_LEVELS) -> Iterator[dict[str, Any]]:
    """Yield the objects that may hold a message, inner ones first."""
    if levels and isinstance(value, dict | list):
        for part in _message_members(value) if isinstance(value, dict) else value:
            yield from _iterate_objects(part, levels=levels - 1)
    if isinstance(value, dict):
        yield value


def _message_members(value: dict[str, Any]) -> list[Any]:
    return [value[place] for place in _MESSAGE_KEYS if place in value]


def _clean_text(value: Any) -> str:
    """The string without lone surrogates, which UTF-8 cannot hold: each becomes a question mark, a last one is dropped.

    Empty for anything but a string with visible text.
    """
    if not isinstance(value, str) or not value.strip():
        return ""
    return _TRAILING_SURROGATE.sub("", value).encode("utf-8", errors="replace").decode("utf-8")
