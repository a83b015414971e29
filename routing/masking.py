"""An upstream that refuses a host key may quote it, whole or in part: what it says is kept without that.

OpenAI's 401 has it as `sk-ab12********wxyz`.
"""

from __future__ import annotations

import re

MASK = b"***"
# Servers without authentication are given a word as their key, which any message may hold.
SHORTEST_SECRET = 8
TELLING_CHARACTERS = 6

_WORD = re.compile(rb"[^\s\"'`\\<>(){}\[\],;:=]*[^\s\"'`\\<>(){}\[\],;:=.!?]")


def without_secret(text: bytes, secret: str) -> bytes:
    """`***` for the secret, for each word that begins as it does, and for words of asterisks between its two ends."""
    if len(secret) < SHORTEST_SECRET:
        return text
    value = secret.encode()
    return _WORD.sub(lambda word: MASK if _quotes(word[0], value) else word[0], text.replace(value, MASK))


def _quotes(word: bytes, secret: bytes) -> bool:
    if word.startswith(secret[:TELLING_CHARACTERS]):
        return True
    head, stars, rest = word.partition(b"**")
    tail = rest.lstrip(b"*")
    return bool(stars and (head or tail)) and secret.startswith(head) and secret.endswith(tail)
