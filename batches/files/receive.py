"""Receiving an upload: the form's events become a file's bytes, written on as they come, and what is said of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from batches.files.filename import normalize_filename
from batches.files.upload_fields import FIELDS, MAX_FIELD_BYTES, check_purpose, parse_lifetime
from relaybatch.http.body.multipart_form import Part
from relaybatch.http.errors import InvalidRequest, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from relaybatch.http.body.multipart_form import Event

FILE_FIELD = "file"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file whose bytes have all come. `lifetime_seconds`: from creation to expiry, None = never."""

    filename: str
    lifetime_seconds: int | None
    size_bytes: int
    sha256: bytes

    def fingerprint(self) -> bytes:
        """What makes two uploads the same: the fields and the file's bytes, however they were framed."""
        return msgspec.json.encode((self.filename, self.lifetime_seconds, self.size_bytes, self.sha256.hex()))


@dataclass(slots=True)
class _Content:
    """The bytes of the file, counted and hashed on their way to `write`."""

    write: Callable[[bytes], None]
    max_bytes: int
    filename: str
    size_bytes: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, piece: bytes) -> None:
        self.size_bytes += len(piece)
        if self.size_bytes > self.max_bytes:
            raise TooLarge(f"The file is larger than {self.max_bytes} bytes.", param=FILE_FIELD)
        self.digest.update(piece)
        self.write(piece)


def receive_upload(events: Iterator[Event], *, write: Callable[[bytes], None], max_bytes: int) -> Upload:
    """Read the form to its end; parts come in any order, and unknown ones are ignored.

    `write` gets the file's bytes, before all of the form is known to be right. Raises InvalidRequest or TooLarge.
    """
    content: _Content | None = None
    fields: dict[str, str] = {}
    for event in events:
        if not isinstance(event, Part):
            continue  # of an unknown part
        if event.name == FILE_FIELD:
            if content:
                raise _repeated(FILE_FIELD)
            content = _Content(write, max_bytes, normalize_filename(event.filename))
            for piece in _pieces(events):
                content.add(piece)
        elif name := FIELDS.get(event.name):
            if name in fields:
                raise _repeated(name)
            fields[name] = _read_field(name, events)
            if name == "purpose":
                check_purpose(fields[name])  # before the file, where that comes later
    return _upload(content, fields)


def _upload(content: _Content | None, fields: dict[str, str]) -> Upload:
    check_purpose(fields.get("purpose"))
    lifetime_seconds = parse_lifetime(fields)
    if content is None:
        raise InvalidRequest("`file` is missing.", code="missing_field", param=FILE_FIELD)
    return Upload(content.filename, lifetime_seconds, content.size_bytes, content.digest.digest())


def _pieces(events: Iterator[Event]) -> Iterator[bytes]:
    """Yield the content of the part that has begun."""
    for event in events:
        if not isinstance(event, bytes):
            return
        yield event


def _read_field(name: str, events: Iterator[Event]) -> str:
    value = bytearray()
    for piece in _pieces(events):
        value += piece
        if len(value) > MAX_FIELD_BYTES:
            raise InvalidRequest(f"`{name}` is longer than {MAX_FIELD_BYTES} bytes.", param=name)
    return value.decode("utf-8", "replace")


def _repeated(name: str) -> InvalidRequest:
    return InvalidRequest(f"`{name}` comes more than once.", param=name)
