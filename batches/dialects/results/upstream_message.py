"""What an upstream's error body says, wherever its vendor puts it, and however it was cut.

Forms that are met: `{"error": {"message", "type"}}` (OpenAI, Anthropic, xAI), the same in a list (Gemini),
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
# Of the longest form, twice: a gateway may wrap what its own upstream said.
MAX_LEVELS = 10

# In this order: the first that says anything is the message.
_MESSAGE_KEYS = ("error", "message", "detail", "errors", "msg", "Message")
_TRAILING_SURROGATE = re.compile("[\ud800-\udbff]$")
# Strings as far as they are whole: a cut may be in the middle of an escape.
_TOKEN = re.compile(r'"(?:[^"\\]+|\\u[0-9a-fA-F]{4}|\\[^u])*(")?|[][{},]', re.DOTALL)
_MAX_PARTIAL_ESCAPE = len(r"\u000")


@dataclass(frozen=True, slots=True)
class UpstreamError:
    """`message` is empty where none is found. `text`: the body as it came, its beginning; `plain_text`: the same, but
    empty for markup and JSON. `types`: all that are named, the nearest to the message first."""

    message: str
    text: str
    plain_text: str
    types: tuple[str, ...]
    request_id: str | None


def parse_upstream_error(body: bytes) -> UpstreamError:
    """Of an error body's first 4 KiB. Never raises; every string can be encoded."""
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
    """None for what is no JSON, nor the beginning of any."""
    if not text.startswith(("{", "[", '"')):
        return None
    with contextlib.suppress(RecursionError):
        for whole in (text, *_close_truncated(text)):
            with contextlib.suppress(ValueError):
                return json.loads(whole, strict=False)
    return None


def _close_truncated(text: str) -> Iterator[str]:
    """What a cut text may have been at least: with the value that the cut is in, and without it."""
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
    """The first place of an object that says anything; all that the entries of a list say."""
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
    """Those in which a message is looked for, the inner ones first."""
    if levels and isinstance(value, dict | list):
        for part in _message_members(value) if isinstance(value, dict) else value:
            yield from _iterate_objects(part, levels=levels - 1)
    if isinstance(value, dict):
        yield value


def _message_members(value: dict[str, Any]) -> list[Any]:
    return [value[place] for place in _MESSAGE_KEYS if place in value]


def _clean_text(value: Any) -> str:
    """A string that any JSON can hold: half a surrogate pair becomes a question mark, and is dropped at the end."""
    if not isinstance(value, str) or not value.strip():
        return ""
    return _TRAILING_SURROGATE.sub("", value).encode("utf-8", errors="replace").decode("utf-8")
