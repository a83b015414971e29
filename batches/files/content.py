"""Reading a file's content piece by piece: flat memory, and no connection held between two pieces."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from batches.payloads import PayloadReadError, PayloadStoreUnavailable, open_store
from relaybatch.http.errors import Unavailable
from relaybatch.http.streaming import start_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batches.models import File
    from relaybatch.http.byte_range import ByteRange

logger = logging.getLogger(__name__)

PIECE_BYTES = 1 << 20


def open_content(file: File, part: ByteRange | None) -> Iterator[bytes]:
    """Read the first piece of the file, or of a part of it, and return an iterator of all.

    Raises Unavailable when it cannot be read. A later piece that cannot raises PayloadReadError out of the iterator:
    the response has begun then, and can only be broken off.
    """
    try:
        return start_stream(_read_pieces(file, part))
    except (PayloadReadError, PayloadStoreUnavailable) as error:
        logger.exception("file not readable", extra={"file_id": file.id})
        raise Unavailable("The file's content cannot be read now.", code="store_unavailable") from error


def _read_pieces(file: File, part: ByteRange | None) -> Iterator[bytes]:
    offset, remaining_bytes = (part.offset, part.length) if part else (0, file.size_bytes)
    while remaining_bytes:
        piece = open_store().read_file(file.id, offset=offset, length=min(remaining_bytes, PIECE_BYTES))
        yield piece
        offset, remaining_bytes = offset + len(piece), remaining_bytes - len(piece)
