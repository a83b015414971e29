"""Lines of a file, however its pieces are cut."""

from __future__ import annotations

import pytest

from batches.file_batches import line_reader
from batches.file_batches.line_reader import Line, iter_lines


def read_lines(content: bytes, *, max_line_bytes: int = 1000) -> list[Line]:
    return list(
        iter_lines(
            lambda offset, length: content[offset : offset + length],
            size_bytes=len(content),
            max_line_bytes=max_line_bytes,
        )
    )


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 5, 1000])
def test_lines_are_the_same_wherever_a_piece_ends(monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> None:
    monkeypatch.setattr(line_reader, "PIECE_BYTES", piece_bytes)
    content = b"\xef\xbb\xbf {a} \r\n\n\t\n" + "{\u2028\u0085}".encode() + b"\n\x0b\n{last}"
    assert read_lines(content) == [
        Line(1, b"{a}"),
        Line(4, "{\u2028\u0085}".encode()),
        Line(5, b"\x0b"),
        Line(6, b"{last}"),
    ]


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_blank_lines_are_none(content: bytes) -> None:
    assert read_lines(content) == []


def test_a_byte_order_mark_further_on_is_part_of_its_line() -> None:
    assert read_lines(b"a\n\xef\xbb\xbfb") == [Line(1, b"a"), Line(2, b"\xef\xbb\xbfb")]


@pytest.mark.parametrize("piece_bytes", [1, 4, 64])
def test_a_line_over_the_limit_is_told_and_not_held(
    monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    monkeypatch.setattr(line_reader, "PIECE_BYTES", piece_bytes)
    content = b"a" * 10 + b"\n" + b"b" * 11 + b"\n" + b"c" * 500 + b"\nd\n" + b"e" * 200
    assert read_lines(content, max_line_bytes=10) == [
        Line(1, b"a" * 10),
        Line(2, None),
        Line(3, None),
        Line(4, b"d"),
        Line(5, None),
    ]


def test_no_more_is_read_than_is_asked_for() -> None:
    """A reader that stops early costs no reading of the rest."""
    offsets = []

    def read(offset: int, length: int) -> bytes:
        offsets.append(offset)
        return b"x\n" * (length // 2)

    lines = iter_lines(read, size_bytes=100 * line_reader.PIECE_BYTES, max_line_bytes=10)
    assert next(lines) == Line(1, b"x")
    assert offsets == [0]


@pytest.mark.parametrize("piece_bytes", [1, 3, 64, 1 << 20])
def test_runs_of_blank_lines_are_counted(monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> None:
    monkeypatch.setattr(line_reader, "PIECE_BYTES", piece_bytes)
    content = b"\n" * 500 + b" \r\n" * 300 + b"  a\n" + b"\t\n" * 200 + b" b"
    assert read_lines(content) == [Line(801, b"a"), Line(1002, b"b")]
