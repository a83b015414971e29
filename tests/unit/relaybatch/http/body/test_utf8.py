"""UTF-8 is validated in chunks; the offset of the first invalid byte is exact."""

from __future__ import annotations

import pytest

from relaybatch.http.body import utf8
from relaybatch.http.body.utf8 import invalid_utf8_at


@pytest.fixture(params=[1, 2, 3, 5, 1 << 20], autouse=True)
def _chunk_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utf8, "CHUNK_BYTES", request.param)


@pytest.mark.parametrize("text", ["", "a", "é😀 and more", "\u0000\u2028\uffff"])
def test_valid_text_has_no_invalid_byte(text: str) -> None:
    assert invalid_utf8_at(text.encode()) is None
    assert invalid_utf8_at(memoryview(bytearray(text.encode()))) is None


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (b"\xff", 0),
        (b"ab\xffcd", 2),
        ("é".encode() + b"\xc0\xaf", 2),
        (b"abc\xed\xa0\x80", 3),
        (b"abc" + "😀".encode()[:3], 3),
        (b"abc" + "😀".encode()[:3] + b"x", 3),
    ],
)
def test_the_first_invalid_byte_is_found(text: bytes, offset: int) -> None:
    assert invalid_utf8_at(text) == offset
