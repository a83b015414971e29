"""Payloads in an object store, by obstore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import obstore

from batches.payloads.errors import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError
from batches.payloads.object_client import open_client
from batches.payloads.object_writer import PART_BYTES, STORE_ERRORS, ObjectWriter
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
        try:
            return cls(open_client(url))
        except (*STORE_ERRORS, ValueError) as error:
            raise PayloadStoreUnavailable("the payload store cannot be opened") from error

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        try:
            obstore.put(self._store, name, _joined(parts))
        except STORE_ERRORS as error:
            raise PayloadWriteError(f"cannot write {name}") from error

    def open_writer(self, name: str) -> PayloadWriter:
        return ObjectWriter(self._store, name)

    def read(self, name: str) -> bytes:
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except STORE_ERRORS as error:
            raise PayloadReadError(f"cannot read {name}") from error

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        try:
            if not length:
                obstore.head(self._store, name)
                return b""
            data = bytes(obstore.get_range(self._store, name, start=offset, length=length))
        except STORE_ERRORS as error:
            raise PayloadReadError(f"cannot read {name}") from error
        if len(data) != length:
            raise PayloadReadError(f"{name} is too short")
        return data

    def objects(self, folder: str) -> Iterator[StoredObject]:
        try:
            for listed in obstore.list(self._store, prefix=folder, chunk_size=OBJECTS_PER_REQUEST):
                for entry in listed:
                    if UNFINISHED_MARK not in entry["path"]:
                        yield StoredObject(entry["path"], entry["size"])
        except STORE_ERRORS as error:
            raise PayloadStoreUnavailable("the payload store cannot be listed") from error

    def remove_objects(self, names: Sequence[str]) -> None:
        try:
            for start in range(0, len(names), OBJECTS_PER_REQUEST):
                obstore.delete(self._store, list(names[start : start + OBJECTS_PER_REQUEST]))
        except STORE_ERRORS as error:
            raise PayloadWriteError("cannot remove objects") from error

    def remove_unfinished(self, name: str) -> None:
        """Nothing to remove: what an upload has sent is no object before its end."""

    def remove_folder(self, folder: str) -> None:
        try:
            for objects in obstore.list(self._store, prefix=folder, chunk_size=OBJECTS_PER_REQUEST):
                obstore.delete(self._store, [entry["path"] for entry in objects])
        except STORE_ERRORS as error:
            raise PayloadWriteError(f"cannot remove {folder}") from error

    def folders(self) -> Iterator[str]:
        try:
            listing = obstore.list_with_delimiter(self._store)
        except STORE_ERRORS as error:
            raise PayloadStoreUnavailable("the payload store cannot be listed") from error
        return iter([prefix.rstrip("/") for prefix in listing["common_prefixes"]])

    def read_marker(self) -> str | None:
        try:
            return bytes(obstore.get(self._store, MARKER_NAME).bytes()).decode("ascii", "replace")
        except FileNotFoundError:
            return None
        except STORE_ERRORS as error:
            raise PayloadStoreUnavailable("the payload store cannot be read") from error

    def write_marker(self, mark: str) -> None:
        self.put(MARKER_NAME, [mark.encode("ascii")])

    def check_free_space(self) -> None:
        """Nothing to check: an object store has no limit, and only a write shows whether writing is allowed."""


def _joined(parts: Sequence[bytes | memoryview]) -> bytes | memoryview | Iterator[bytes | memoryview]:
    """One body where it is small: parts that are given one by one take three requests at least."""
    if len(parts) == 1:
        return parts[0]
    return b"".join(parts) if sum(map(len, parts)) <= PART_BYTES else iter(parts)
