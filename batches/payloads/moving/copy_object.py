"""Copying one object from a store to another, piece by piece, and reading back what was written."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from batches.payloads.errors import PayloadReadError, PayloadWriteError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batches.payloads.store import PayloadStore, StoredObject

PIECE_BYTES = 4 << 20


def copy_object(source: PayloadStore, target: PayloadStore, stored: StoredObject) -> None:
    """Store the object in `target`. What is not read back as it was written is removed there again.

    Raises PayloadReadError and PayloadWriteError.
    """
    digest = _write(source, target, stored)
    try:
        is_same = _digest(target, stored) == digest
    except PayloadReadError:
        is_same = False
    if not is_same:
        # Else readers, who ask the target first, would get it.
        target.remove_objects([stored.name])
        raise PayloadWriteError(f"{stored.name} was not read back as it was written")


def is_copied(source: PayloadStore, target: PayloadStore, stored: StoredObject) -> bool:
    """Whether `target` has the same bytes, which an interrupted run may have left unchecked."""
    try:
        in_target = _digest(target, stored)
    except PayloadReadError:
        return False
    return in_target == _digest(source, stored)


def _write(source: PayloadStore, target: PayloadStore, stored: StoredObject) -> bytes:
    """Return the digest of what was read from the source."""
    digest = hashlib.sha256()
    if stored.size_bytes <= PIECE_BYTES:
        body = source.read_range(stored.name, offset=0, length=stored.size_bytes)
        digest.update(body)
        target.put(stored.name, [body])
        return digest.digest()
    with target.open_writer(stored.name) as writer:
        for piece in _pieces(source, stored):
            digest.update(piece)
            writer.write(piece)
        writer.commit()
    return digest.digest()


def _digest(store: PayloadStore, stored: StoredObject) -> bytes:
    digest = hashlib.sha256()
    for piece in _pieces(store, stored):
        digest.update(piece)
    return digest.digest()


def _pieces(store: PayloadStore, stored: StoredObject) -> Iterator[bytes]:
    """At least one, so that an empty object is asked for, too."""
    for offset in range(0, max(stored.size_bytes, 1), PIECE_BYTES):
        length = min(PIECE_BYTES, stored.size_bytes - offset)
        yield store.read_range(stored.name, offset=offset, length=length)
