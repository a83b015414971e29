"""Parse `multipart/form-data` piece by piece: memory does not grow with the body.

Parsing is the library's (docs/adr/0018-multipart-library.md); limits, names and errors are ours.
https://www.rfc-editor.org/rfc/rfc7578
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote_to_bytes

from multipart import MultipartError, PushMultipartParser, parse_options_header

from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from multipart import MultipartSegment

MAX_PARTS = 128
# RFC 2046 allows 70.
MAX_BOUNDARY_CHARACTERS = 256
# A name of 1,024 characters takes three times as many bytes in UTF-8, and each of these three when it is escaped.
MAX_PART_HEADER_BYTES = 16_384
MAX_PART_HEADERS = 16
# RFC 5987, as in `filename*=UTF-8''na%C3%AFve`: not for forms (RFC 7578, 4.2), but some clients send it.
_EXTENDED_NAME = re.compile(
    r";\s*filename\*\s*=\s*(?P<charset>[\w-]+)'[\w-]*'(?P<name>[^\s;\"]*)", re.IGNORECASE | re.ASCII
)
_QUOTED = re.compile(r'"(?:\\.|[^\\"])*"')
_VERBATIM_ENCODINGS = ("", "7bit", "8bit", "binary")


@dataclass(frozen=True, slots=True)
class Part:
    """The beginning of a part. `filename`: None for a plain field; any characters, as the client sent them."""

    name: str
    filename: str | None


# The beginning of a part, a piece of its content, or its end.
Event: TypeAlias = Part | bytes | None


def parse_form(chunks: Iterable[bytes], *, content_type: str) -> Iterator[Event]:
    """Return an iterator of events: of each part its beginning, its content in pieces that are not empty, and None.

    What follows the last boundary is read and ignored. Raises InvalidRequest at once for another content type; the
    iterator does for a body that is malformed or cut short, with too many parts, too long a header, or content in a
    transfer encoding.
    """
    return _events(_parser(content_type), chunks)


def invalid_form(message: str, *, param: str | None = None) -> InvalidRequest:
    return InvalidRequest(f"The body is no valid form: {message}", code="invalid_multipart", param=param)


def _events(parser: PushMultipartParser, chunks: Iterable[bytes]) -> Iterator[Event]:
    try:
        for chunk in chunks:
            for event in parser.parse(chunk):
                yield event if event is None or isinstance(event, bytes) else _part(event)
        parser.close()
    except MultipartError as error:
        raise invalid_form(f"{error}.") from error


def _parser(content_type: str) -> PushMultipartParser:
    kind, options = parse_options_header(content_type)
    boundary = options.get("boundary", "")
    is_boundary = (
        0 < len(boundary) <= MAX_BOUNDARY_CHARACTERS and boundary.isascii() and boundary.isprintable()
    )
    if kind != "multipart/form-data" or not is_boundary:
        raise invalid_form(
            "Content-Type must be multipart/form-data with the boundary between its parts.",
            param="Content-Type",
        )
    # latin-1 takes any byte. Names are decoded below, so that one which is not UTF-8 is no error.
    return PushMultipartParser(
        boundary,
        max_header_size=MAX_PART_HEADER_BYTES,
        max_header_count=MAX_PART_HEADERS,
        max_segment_count=MAX_PARTS,
        header_charset="latin-1",
    )


def _part(segment: MultipartSegment) -> Part:
    encoding = segment.header("Content-Transfer-Encoding", "").strip().lower()
    if encoding not in _VERBATIM_ENCODINGS:
        raise invalid_form(
            "the content of parts is taken as it is, so send it without Content-Transfer-Encoding.",
            param="Content-Transfer-Encoding",
        )
    extended = _extended_filename(segment.header("Content-Disposition", ""))
    filename = _decode(segment.filename) if extended is None and segment.filename is not None else extended
    return Part(_decode(segment.name or ""), filename)


def _extended_filename(disposition: str) -> str | None:
    found = _EXTENDED_NAME.search(_QUOTED.sub('""', disposition))
    if not found:
        return None
    charset = "latin-1" if found["charset"].lower() == "iso-8859-1" else "utf-8"
    return unquote_to_bytes(found["name"]).decode(charset, "replace")


def _decode(text: str) -> str:
    return text.encode("latin-1", "replace").decode("utf-8", "replace")
