"""The demo upstream's embeddings: small vectors that depend on the text alone, so that equal texts are found equal.

Shape: https://platform.openai.com/docs/api-reference/embeddings/object
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from typing import Any

CHARACTERS_PER_TOKEN = 4
DEFAULT_DIMENSIONS, MAX_DIMENSIONS = 8, 3072


def embedding_list(body: dict[str, Any]) -> dict[str, Any]:
    texts = _texts(body.get("input"))
    dimensions = _dimensions(body.get("dimensions"))
    # The official SDKs ask for it when they are called without an `encoding_format`.
    is_base64 = body.get("encoding_format") == "base64"
    vectors = [_unit_vector(text, dimensions) for text in texts]
    tokens = sum(max(1, len(text) // CHARACTERS_PER_TOKEN) for text in texts)
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _encode(vector, is_base64=is_base64)}
            for index, vector in enumerate(vectors)
        ],
        "model": body["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _texts(given: object) -> list[str]:
    """One text for each vector: `input` is a string, a list of strings, a list of tokens, or a list of such lists."""
    is_tokens = isinstance(given, list) and bool(given) and all(isinstance(part, int) for part in given)
    inputs = given if isinstance(given, list) and not is_tokens else [given]
    return [part if isinstance(part, str) else json.dumps(part) for part in inputs]


def _dimensions(given: object) -> int:
    is_count = isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MAX_DIMENSIONS
    return given if isinstance(given, int) and is_count else DEFAULT_DIMENSIONS


def _unit_vector(text: str, dimensions: int) -> bytes:
    """A vector of length 1 made of the text's hash, as 32-bit floats, little-endian."""
    digest = hashlib.shake_128(text.encode(errors="replace")).digest(2 * dimensions)
    numbers = [2 * value + 1 for value in struct.unpack(f"<{dimensions}h", digest)]  # odd, so never 0
    length = math.hypot(*numbers)
    return struct.pack(f"<{dimensions}f", *(number / length for number in numbers))


def _encode(vector: bytes, *, is_base64: bool) -> str | list[float]:
    if is_base64:
        return base64.b64encode(vector).decode()
    return list(struct.unpack(f"<{len(vector) // 4}f", vector))
