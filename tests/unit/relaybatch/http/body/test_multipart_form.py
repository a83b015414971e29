"""A form's parts come out the same however its bytes are cut, and a malformed one is always a 400."""

from __future__ import annotations

import contextlib
import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaybatch.http.body.multipart_form import MAX_PARTS, Part, parse_form
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPE = "multipart/form-data; boundary=b"
PIECES = st.lists(
    st.sampled_from([b"\r\n--b", b"\r\n", b"--b", b"--", b"\r", b"\n", b"-", b"b", b":", b'"', b"x"])
)
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'


def cut(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def parts_of(chunks: Iterator[bytes]) -> list[tuple[Part, bytes]]:
    found: list[tuple[Part, bytes]] = []
    for event in parse_form(chunks, content_type=TYPE):
        if isinstance(event, Part):
            found.append((event, b""))
        elif event is not None:
            found[-1] = (found[-1][0], found[-1][1] + event)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 64, 1000])
def test_the_same_parts_however_the_bytes_are_cut(size: int) -> None:
    content = b"\r\n--\r\n--c\r\n-b--b\r\r\n" * 3
    body = (
        HEAD + content + b'\r\n--b\r\nContent-Disposition: form-data; name="p"\r\n\r\nv\r\n--b--\r\nepilogue'
    )
    assert parts_of(cut(body, size)) == [(Part("file", "f"), content), (Part("p", None), b"v")]


@given(content=PIECES.map(b"".join), size=st.integers(1, 40))
@settings(max_examples=300, deadline=None)
def test_every_content_without_the_delimiter_is_kept(content: bytes, size: int) -> None:
    if b"\r\n--b" not in b"\r\n" + content + b"\r\n-":
        assert parts_of(cut(HEAD + content + b"\r\n--b--", size)) == [(Part("file", "f"), content)]


@given(body=PIECES.map(b"".join), size=st.integers(1, 40))
@settings(max_examples=300, deadline=None)
def test_no_body_fails_otherwise_than_by_a_400(body: bytes, size: int) -> None:
    for start in (b"", b"--b\r\n", HEAD):
        with contextlib.suppress(InvalidRequest):
            parts_of(cut(start + body, size))


def test_as_many_parts_as_the_limit_and_no_more() -> None:
    part = HEAD + b"\r\n"
    assert len(parts_of(cut(part * MAX_PARTS + b"--b--", 500))) == MAX_PARTS
    with pytest.raises(InvalidRequest):
        parts_of(cut(part * (MAX_PARTS + 1) + b"--b--", 500))


def test_memory_does_not_grow_with_the_body() -> None:
    piece = os.urandom(1 << 18)
    tracemalloc.start()
    for _ in parse_form(iter([HEAD, *[piece] * 200, b"\r\n--b--"]), content_type=TYPE):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
