"""Payloads in an object store, by obstore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import obstore

from batches.payloads.errors import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError
from batches.payloads.object_client import open_client, raised_as
from batches.payloads.object_writer import PART_BYTES, ObjectWriter
from batches.payloads.store import MARKER_NAME, UNFINISHED_MARK, StoredObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from obstore.store import ObjectStore

    from batches.payloads.store import PayloadWriter

OBJECTS_PER_REQUEST = 1000


class ObjectPayloads:
    """Any store that obstore supports, by URL (`s3://bucket/prefix`); credentials come from the environment."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def from_url(cls, url: str) -> ObjectPayloads:
        """Raises PayloadStoreUnavailable."""
        with raised_as(PayloadStoreUnavailable, "the payload store cannot be opened"):
            return cls(open_client(url))

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        with raised_as(PayloadWriteError, f"cannot write {name}"):
            obstore.put(self._store, name, _joined(parts))

    def open_writer(self, name: str) -> PayloadWriter:
        return ObjectWriter(self._store, name)

    def read(self, name: str) -> bytes:
        with raised_as(PayloadReadError, f"cannot read {name}"):
            return bytes(obstore.get(self._store, name).bytes())

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        with raised_as(PayloadReadError, f"cannot read {name}"):
            if not length:
                obstore.head(self._store, name)
                return b""
            data = bytes(obstore.get_range(self._store, name, start=offset, length=length))
        if len(data) != length:
            raise PayloadReadError(f"{name} is too short")
        return data

    def objects(self, folder: str) -> Iterator[StoredObject]:
        with raised_as(PayloadStoreUnavailable, "the payload store cannot be listed"):
            for listed in obstore.list(self._store, prefix=folder, chunk_size=OBJECTS_PER_REQUEST):
                for entry in listed:
                    if UNFINISHED_MARK not in entry["path"]:
                        yield StoredObject(entry["path"], entry["size"])

    def remove_objects(self, names: Sequence[str]) -> None:
        with raised_as(PayloadWriteError, "cannot remove objects"):
            for start in range(0, len(names), OBJECTS_PER_REQUEST):
                obstore.delete(self._store, list(names[start : start + OBJECTS_PER_REQUEST]))

    def remove_unfinished(self, name: str) -> None:
        """Nothing to remove: what an upload has sent is no object before its end."""

    def remove_folder(self, folder: str) -> None:
        with raised_as(PayloadWriteError, f"cannot remove {folder}"):
            for objects in obstore.list(self._store, prefix=folder, chunk_size=OBJECTS_PER_REQUEST):
                obstore.delete(self._store, [entry["path"] for entry in objects])

    def folders(self) -> Iterator[str]:
        with raised_as(PayloadStoreUnavailable, "the payload store cannot be listed"):
            listing = obstore.list_with_delimiter(self._store)
        return iter([prefix.rstrip("/") for prefix in listing["common_prefixes"]])

    def read_marker(self) -> str | None:
        with raised_as(PayloadStoreUnavailable, "the payload store cannot be read"):
            try:
                return bytes(obstore.get(self._store, MARKER_NAME).bytes()).decode("ascii", "replace")
            except FileNotFoundError:
                return None

    def write_marker(self, mark: str) -> None:
        self.put(MARKER_NAME, [mark.encode("ascii")])

    def check_free_space(self) -> None:
        """Nothing to check: an object store has no limit, and only a write shows whether writing is allowed."""


def _joined(parts: Sequence[bytes | memoryview]) -> bytes | memoryview | Iterator[bytes | memoryview]:
    """One body where it is small: parts that are given one by one take three requests at least."""
    if len(parts) == 1:
        return parts[0]
    return b"".join(parts) if sum(map(len, parts)) <= PART_BYTES else iter(parts)
