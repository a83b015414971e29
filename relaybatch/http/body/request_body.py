"""Read a request's body from the server's stream, up to a limit on its decoded size, plain or gzip.

Django's own reading keeps a second copy, knows no compression, and answers errors in HTML. The limits of all routes
are in relaybatch.http.body.body_limits.
"""

from __future__ import annotations

import mmap
import time
import zlib
from typing import TYPE_CHECKING

from relaybatch.db.connection import release_connection
from relaybatch.http.body.body_limits import max_compressed_bytes
from relaybatch.http.errors import ApiError, InvalidRequest, LengthRequired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

CHUNK_BYTES = 1 << 18
# How long the rest of a body that nobody wanted is read.
DRAIN_SECONDS = 10
# In one gzip body. Tools that write many members put 64 KiB in each. Each member takes a pass of the loop in Python,
# however little it holds.
MAX_GZIP_MEMBERS = 10_000
_META_KEY = "relaybatch.request_body"


class RequestBody:
    """The part of a request's body that was not read yet. `of` gives the one object of a request.

    `declared_bytes`: the Content-Length, None without one. `is_chunked`: sent with Transfer-Encoding: chunked.
    """

    def __init__(self, request: HttpRequest) -> None:
        environ = request.META
        # Under ASGI, Django has read the body already, and the request itself is the stream.
        self._stream = environ.get("wsgi.input", request)
        self._socket = environ.get("gunicorn.socket")
        length = str(environ.get("CONTENT_LENGTH") or "")
        self.declared_bytes = int(length) if length.isdecimal() else None
        self.is_chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        self._is_terminated = bool(environ.get("wsgi.input_terminated", "wsgi.input" not in environ))
        self._remaining_bytes = self.declared_bytes

    @classmethod
    def of(cls, request: HttpRequest) -> RequestBody:
        body: RequestBody | None = request.META.get(_META_KEY)
        if body is None:
            body = request.META[_META_KEY] = cls(request)
        return body

    @property
    def is_readable(self) -> bool:
        """Whether the end of the body is known: by its length, or because the server ends the stream there."""
        return self._remaining_bytes is not None or self._is_terminated

    def chunks(self) -> Iterator[bytes]:
        """Yield the rest of the body. Raises InvalidRequest when the client disconnects before the end.

        The thread's database connection is released first, so that a slow client does not hold one.
        """
        release_connection()
        while chunk := self._read_chunk():
            yield chunk

    def _read_chunk(self) -> bytes:
        size = CHUNK_BYTES if self._remaining_bytes is None else min(self._remaining_bytes, CHUNK_BYTES)
        if not size or not self.is_readable:
            return b""
        try:
            chunk: bytes = self._stream.read(size)
        except Exception as error:  # each server has its own exception types for a body that ends early
            raise _incomplete_body() from error
        if self._remaining_bytes is not None:
            if not chunk:
                raise _incomplete_body()
            self._remaining_bytes -= len(chunk)
        return chunk

    @property
    def _is_read(self) -> bool:
        """Whether nothing is left, or there is no body. Of a chunked body, only the server knows."""
        return not self.is_chunked and not self._remaining_bytes

    def drain(self, *, limit_bytes: int, seconds: float) -> None:
        """Read and discard the rest, for at most `limit_bytes` and `seconds`. The server closes what is left then."""
        if self._is_read:
            return
        release_connection()
        deadline = time.monotonic() + seconds
        before = self._socket.gettimeout() if self._socket else None
        try:
            while limit_bytes > 0 and (remaining := deadline - time.monotonic()) > 0:
                if self._socket:
                    self._socket.settimeout(remaining)
                chunk = self._read_chunk()
                if not chunk:
                    return
                limit_bytes -= len(chunk)
        except InvalidRequest:
            return
        finally:
            if self._socket:
                self._socket.settimeout(before)


def read_body(request: HttpRequest, *, limit_bytes: int, too_large: type[ApiError]) -> memoryview:
    """Read the whole decoded body. Raises as `decoded_chunks` does, before it allocates where that is possible."""
    chunks = decoded_chunks(request, limit_bytes=limit_bytes, too_large=too_large)
    # An anonymous mapping: its pages are allocated as they are filled and returned to the system with the last view.
    # The allocator would keep some 30 MB for each thread that ever served a large body.
    buffer = mmap.mmap(-1, limit_bytes)
    try:
        size = _fill(buffer, chunks)
    except BaseException:
        buffer.close()  # now, not when the exception's frames are collected
        raise
    return memoryview(buffer)[:size]


def decoded_chunks(request: HttpRequest, *, limit_bytes: int, too_large: type[ApiError]) -> Iterator[bytes]:
    """Return an iterator of the decoded body, in chunks of at most CHUNK_BYTES, which raises `too_large` for the first
    byte over the limit.

    Raises at once what the headers tell: `too_large` (by Content-Length), LengthRequired, InvalidRequest (unknown
    encoding). The iterator also raises InvalidRequest (incomplete, invalid gzip).
    """
    request_body = RequestBody.of(request)
    if request_body.is_chunked and not request_body.is_readable:
        raise LengthRequired("This server takes no chunked bodies: send a Content-Length.")
    compressed = _is_gzip(request.META.get("HTTP_CONTENT_ENCODING", ""))
    if not compressed and (request_body.declared_bytes or 0) > limit_bytes:
        raise body_too_large(too_large, limit_bytes=limit_bytes)
    chunks = request_body.chunks()
    decoded = _gunzip(chunks, limit_bytes=limit_bytes) if compressed else chunks
    return _within_limit(decoded, limit_bytes=limit_bytes, too_large=too_large)


def _within_limit(chunks: Iterator[bytes], *, limit_bytes: int, too_large: type[ApiError]) -> Iterator[bytes]:
    remaining_bytes = limit_bytes
    for chunk in chunks:
        remaining_bytes -= len(chunk)
        if remaining_bytes < 0:
            raise body_too_large(too_large, limit_bytes=limit_bytes)
        yield chunk


def _fill(buffer: mmap.mmap, chunks: Iterator[bytes]) -> int:
    """Copy the chunks into the buffer and return how many bytes there are."""
    size = 0
    for chunk in chunks:
        buffer[size : size + len(chunk)] = chunk
        size += len(chunk)
    return size


def body_too_large(error: type[ApiError], *, limit_bytes: int) -> ApiError:
    return error(f"The body is larger than {limit_bytes} bytes.", code="body_too_large")


def _is_gzip(encoding: str) -> bool:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return False
    if name in ("gzip", "x-gzip"):
        return True
    raise InvalidRequest("Content-Encoding must be gzip or identity.", param="Content-Encoding")


def _gunzip(chunks: Iterator[bytes], *, limit_bytes: int) -> Iterator[bytes]:
    """Yield decoded chunks of at most CHUNK_BYTES. Several gzip members are one body.

    The compressed size is limited too, since any number of empty members decodes to nothing.
    """
    remaining_bytes, members = max_compressed_bytes(limit_bytes), 0
    decoder = zlib.decompressobj(wbits=31)
    is_at_member_start = True
    try:
        for chunk in chunks:
            remaining_bytes -= len(chunk)
            if remaining_bytes < 0:
                raise _invalid_gzip("it holds far more compressed bytes than its content needs")
            rest = chunk
            while rest:
                is_at_member_start = False
                yield from _decompress_member(decoder, rest)
                rest = decoder.unused_data
                if decoder.eof:
                    decoder, is_at_member_start, members = zlib.decompressobj(wbits=31), True, members + 1
                if members > MAX_GZIP_MEMBERS:
                    raise _invalid_gzip(f"it has more than {MAX_GZIP_MEMBERS} members")
    except zlib.error as error:
        raise _invalid_gzip("it cannot be decoded") from error
    if not is_at_member_start:
        raise _invalid_gzip("it ends too early")


def _decompress_member(decoder: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    """Yield what the chunk adds to the current gzip member, at most CHUNK_BYTES at a time."""
    decoded = decoder.decompress(chunk, CHUNK_BYTES)
    while decoded:
        yield decoded
        decoded = decoder.decompress(decoder.unconsumed_tail, CHUNK_BYTES)


def _incomplete_body() -> InvalidRequest:
    return InvalidRequest("The body ended before its announced length.", code="incomplete_body")


def _invalid_gzip(reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"The body is no valid gzip: {reason}.", code="invalid_encoding", param="Content-Encoding"
    )
