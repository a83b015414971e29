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

MESSAGE_CHARACTERS = 2000
TEXT_CHARACTERS = 500
# Of the longest form, twice: a gateway may wrap what its own upstream said.
MOST_LEVELS = 10

# In this order: the first that says anything is the message.
_PLACES = ("error", "message", "detail", "errors", "msg", "Message")
_HALF_PAIR = re.compile("[\ud800-\udbff]$")
# Strings as far as they are whole: a cut may be in the middle of an escape.
_TOKEN = re.compile(r'"(?:[^"\\]+|\\u[0-9a-fA-F]{4}|\\[^u])*(")?|[][{},]', re.DOTALL)
_LONGEST_HALF_ESCAPE = len(r"\u000")


@dataclass(frozen=True, slots=True)
class UpstreamWords:
    """`message` is empty where none is found. `text`: the body as it came, its beginning; `plain_text`: the same, but
    empty for markup and JSON. `types`: all that are named, the nearest to the message first."""

    message: str
    text: str
    plain_text: str
    types: tuple[str, ...]
    request_id: str | None


def words_of(body: bytes) -> UpstreamWords:
    """Of an error body's first 4 KiB. Never raises; every string can be encoded."""
    text = body.decode(errors="replace").removeprefix("\ufeff").strip()
    value = _value(text)
    objects = list(_objects(value))
    ids = [_text(found.get("request_id")) for found in objects]
    beginning = text[:TEXT_CHARACTERS]
    return UpstreamWords(
        message=_message(value)[:MESSAGE_CHARACTERS],
        text=beginning,
        plain_text="" if text.startswith(("<", "{", "[")) else beginning,
        types=tuple(filter(None, (_text(found.get("type")) for found in objects))),
        request_id=next(filter(None, reversed(ids)), None),
    )


def _value(text: str) -> Any:
    """None for what is no JSON, nor the beginning of any."""
    if not text.startswith(("{", "[", '"')):
        return None
    with contextlib.suppress(RecursionError):
        for whole in (text, *_completed(text)):
            with contextlib.suppress(ValueError):
                return json.loads(whole, strict=False)
    return None


def _completed(text: str) -> Iterator[str]:
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
        elif not found[1] and len(text) - found.end() <= _LONGEST_HALF_ESCAPE:
            yield f'{text[: found.end()]}"{within}'
    yield text + within
    yield text[:end] + closing


def _message(value: Any, *, levels: int = MOST_LEVELS) -> str:
    """The first place of an object that says anything; all that the entries of a list say."""
    if isinstance(value, str):
        return _text(value)
    if levels and isinstance(value, dict):
        return next(filter(None, (_message(part, levels=levels - 1) for part in _parts(value))), "")
    if levels and isinstance(value, list):
        return "; ".join(filter(None, (_message(part, levels=levels - 1) for part in value)))
    return ""


def _objects(value: Any, *, levels: int = MOST_LEVELS) -> Iterator[dict[str, Any]]:
    """Those in which a message is looked for, the inner ones first."""
    if levels and isinstance(value, dict | list):
        for part in _parts(value) if isinstance(value, dict) else value:
            yield from _objects(part, levels=levels - 1)
    if isinstance(value, dict):
        yield value


def _parts(value: dict[str, Any]) -> list[Any]:
    return [value[place] for place in _PLACES if place in value]


def _text(value: Any) -> str:
    """A string that any JSON can hold: half a surrogate pair becomes a question mark, and is dropped at the end."""
    if not isinstance(value, str) or not value.strip():
        return ""
    return _HALF_PAIR.sub("", value).encode("utf-8", errors="replace").decode("utf-8")
