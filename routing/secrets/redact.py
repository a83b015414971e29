"""Redact secrets in an upstream's error body: one that rejects a host key may quote it, whole or in part.

OpenAI's 401 quotes it as `sk-ab12********wxyz`. Within JSON, HTML or a URL it may be escaped.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = b"***"
# Servers without authentication get a word as their key, which any message may hold.
MIN_SECRET_LENGTH = 8
RECOGNIZED_PREFIX_LENGTH = 6

_BETWEEN_WORDS = rb"\s\"'`\\<>(){}\[\],;:="
_WORD = re.compile(rb"[^%b]*[^%b.!?]" % (_BETWEEN_WORDS, _BETWEEN_WORDS))
_REST_OF_WORD = re.compile(rb"(?:%b)?" % _WORD.pattern)
_WORD_BEFORE = re.compile(rb"[^%b]" % _BETWEEN_WORDS)
# A header's value often holds more than its credential: `Basic …`, `session=…; theme=…`.
_PARTS = re.compile(r"[\s;,=]+")
# Text of these is neither escaped nor masked: it holds a secret only as it is.
_UNESCAPED = re.compile(r"[A-Za-z0-9._:/@=-]*")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", " ": r"\+"}


def redact_secrets(text: bytes, values: Iterable[str]) -> bytes:
    """Redact each value, and each part of it that could be a secret by itself."""
    for value in values:
        is_one_word = " " not in value
        if len(value) >= MIN_SECRET_LENGTH:
            # If the value has several words, its beginning is a word that any message may hold.
            text = _redact_quoted(text, value, also_beginnings=is_one_word)
        for part in dict.fromkeys(([value] if is_one_word else []) + _PARTS.split(value)):
            text = redact_secret(text, part)
    return text


def redact_short_text(text: str, values: Iterable[str]) -> str:
    """As `redact_secrets`, for a text of few characters that comes with each answer and hardly ever holds a secret."""
    if not text:
        return text
    secrets = tuple(values)
    if _UNESCAPED.fullmatch(text) and not any(
        part[:RECOGNIZED_PREFIX_LENGTH] in text for part in _long_parts(secrets)
    ):
        return text
    return redact_secrets(text.encode(), secrets).decode()


def _long_parts(values: Iterable[str]) -> Iterator[str]:
    """The values and their parts that are long enough to be redacted."""
    for value in values:
        yield from (part for part in (value, *_PARTS.split(value)) if len(part) >= MIN_SECRET_LENGTH)


def redact_secret(text: bytes, secret: str) -> bytes:
    """Replace by `***` the secret, however escaped, each word that begins like it, and each word that masks its middle
    with asterisks."""
    if len(secret) < MIN_SECRET_LENGTH:
        return text
    masked = _redact_quoted(text, secret, also_beginnings=True)
    value = secret.encode()
    return _WORD.sub(lambda word: MASK if _is_masked_form(word[0], value) else word[0], masked)


def _redact_quoted(text: bytes, secret: str, *, also_beginnings: bool) -> bytes:
    spellings = [_escaped_forms(character) for character in secret]
    prefix = re.compile(b"".join(each.pattern for each in spellings[:RECOGNIZED_PREFIX_LENGTH]))
    kept, done, start = [], 0, 0
    while found := prefix.search(text, start):
        end, is_whole = _match_rest(text, found.end(), spellings[RECOGNIZED_PREFIX_LENGTH:])
        if is_whole or (
            also_beginnings and not _WORD_BEFORE.match(text, max(found.start() - 1, 0), found.start())
        ):
            kept += [text[done : found.start()], MASK]
            done = start = end
        else:
            start = found.start() + 1
    return b"".join([*kept, text[done:]])


def _match_rest(text: bytes, start: int, spellings: list[re.Pattern[bytes]]) -> tuple[int, bool]:
    """The end of the text that matches the secret (with the rest of its word), and whether the whole secret matched."""
    end = start
    for spelling in spellings:
        found = spelling.match(text, end)
        if found is None:
            rest = _REST_OF_WORD.match(text, end)
            return (rest.end() if rest else end), False
        end = found.end()
    return end, True


@lru_cache(maxsize=256)
def _escaped_forms(character: str) -> re.Pattern[bytes]:
    """A pattern for the character, plain or escaped as in JSON (PHP writes `\\/`, .NET and Gson `\\u002B`), JSON within
    JSON, a URL or HTML."""
    itself = re.escape(character)
    if character.isalnum():
        return re.compile(itself.encode())
    code = ord(character)
    digits = "".join(f"[{digit}{digit.upper()}]" for digit in f"{code:02x}")
    escaped = r"\\+" if character == "\\" else rf"\\*{itself}"
    ways = [rf"\\+u00{digits}", f"%(?:25)*{digits}", f"&#0*{code};", f"&#[xX]0*{digits};"]
    # The plain character last: a backslash, a per cent sign and an ampersand also begin the escaped forms.
    return re.compile(f"(?:{'|'.join([*ways, _ENTITIES.get(character, escaped), escaped])})".encode())


def _is_masked_form(word: bytes, secret: bytes) -> bool:
    head, stars, rest = word.partition(b"**")
    tail = rest.lstrip(b"*")
    return bool(stars and (head or tail)) and secret.startswith(head) and secret.endswith(tail)
