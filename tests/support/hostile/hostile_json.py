"""Building blocks of hostile JSON, and a row of the table of hostile inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 6_000_000
EMOJI = "😀".encode()


@dataclass(frozen=True, slots=True)
class Row:
    """`size_bytes`: the decoded size, if the bytes are compressed. `outcome`: what `decode` must return."""

    name: str
    decode: Callable[[bytes], str]
    outcome: str
    body: Callable[[], bytes]
    size_bytes: int | None = None


def list_of(element: bytes, size: int = SIZE) -> bytes:
    return b"[" + b",".join([element] * (size // (len(element) + 1))) + b"]"


def members(size: int = SIZE, *, value: bytes = b"1") -> bytes:
    """Members of an object, without its braces, with distinct names."""
    return b",".join(b'"%x":%b' % (number, value) for number in range(size // (9 + len(value))))


def string(piece: bytes = b"x", *, last: bytes = EMOJI, size: int = SIZE) -> bytes:
    """A string whose last character makes every character of a Python string take four bytes."""
    return b'"' + piece * (size // len(piece)) + last + b'"'


def deep(size: int = SIZE) -> bytes:
    return b"[" * (size // 2) + b"]" * (size // 2)


def two_models(rest: bytes) -> bytes:
    return b'[{"model":"m","Model":"n",' + rest + b"}]"
