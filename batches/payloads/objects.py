"""Payloads in a directory shared by all replicas, or in an object store: both through obstore."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from batches.payloads.errors import PayloadStoreUnavailable, PayloadUnreadable, PayloadUnwritable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MARK = ".relaybatch-store"
LEAST_ROOM_BYTES = 1 << 20
# What obstore raises; its FileNotFoundError and the like are OSErrors.
STORE_ERRORS = (BaseError, OSError)


class ObjectPayloads:
    """Any store that obstore speaks to, by URL (`s3://bucket/prefix`); credentials from its environment."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def at(cls, url: str) -> ObjectPayloads:
        return cls(from_url(url))

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        try:
            obstore.put(self._store, name, parts[0] if len(parts) == 1 else iter(parts))
        except STORE_ERRORS as error:
            raise PayloadUnwritable(f"cannot write {name}") from error

    def read(self, name: str) -> bytes:
        try:
            return bytes(obstore.get(self._store, name).bytes())
        except STORE_ERRORS as error:
            raise PayloadUnreadable(f"cannot read {name}") from error

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        try:
            data = bytes(obstore.get_range(self._store, name, start=offset, length=length))
        except STORE_ERRORS as error:
            raise PayloadUnreadable(f"cannot read {name}") from error
        if len(data) != length:
            raise PayloadUnreadable(f"{name} is too short")
        return data

    def remove_folder(self, folder: str) -> None:
        try:
            for objects in obstore.list(self._store, prefix=folder, chunk_size=1000):
                obstore.delete(self._store, [entry["path"] for entry in objects])
        except STORE_ERRORS as error:
            raise PayloadUnwritable(f"cannot remove {folder}") from error

    def folders(self) -> Iterator[str]:
        try:
            listing = obstore.list_with_delimiter(self._store)
        except STORE_ERRORS as error:
            raise PayloadStoreUnavailable("the payload store cannot be listed") from error
        return iter([prefix.rstrip("/") for prefix in listing["common_prefixes"]])

    def read_mark(self) -> str | None:
        try:
            return bytes(obstore.get(self._store, MARK).bytes()).decode("ascii", "replace")
        except FileNotFoundError:
            return None
        except STORE_ERRORS as error:
            raise PayloadStoreUnavailable("the payload store cannot be read") from error

    def write_mark(self, mark: str) -> None:
        self.put(MARK, [mark.encode("ascii")])

    def require_room(self) -> None:
        """An object store has no end, and only a write tells whether one is allowed."""


class DirectoryPayloads(ObjectPayloads):
    """A local or mounted directory: folders 0700, files 0600, and synced to disk before they count as stored."""

    def __init__(self, root: Path) -> None:
        self._root = root
        try:
            _make_folder(root)
        except OSError as error:
            raise PayloadStoreUnavailable(
                f"the payload directory cannot be made: {error.strerror}"
            ) from error
        super().__init__(LocalStore(root))

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        try:
            root = _identity(self._root)
            self._make_folders_of(name)
            super().put(name, parts)
            _make_durable(self._root / name)
            moved = _identity(self._root) != root
        except OSError as error:
            raise PayloadUnwritable(f"cannot write {name}") from error
        if moved:
            raise PayloadUnwritable(f"the volume was taken away while {name} was written")

    def _make_folders_of(self, name: str) -> None:
        """Never the root, and a folder's first object is directly in it.

        Where a batch's requests are not, the volume is not mounted: its answers would lie beneath it for ever.
        """
        first, *deeper = name.split("/")[:-1] or [""]
        folder = self._root / first
        if first and not deeper:
            _make_durable_folder(folder)
        for part in deeper:
            folder /= part
            _make_durable_folder(folder)

    def require_room(self) -> None:
        try:
            file_system = os.statvfs(self._root)
        except OSError as error:
            raise PayloadStoreUnavailable("the payload directory is missing") from error
        if not os.access(self._root, os.W_OK | os.X_OK):
            raise PayloadStoreUnavailable("the payload directory is read-only")
        if file_system.f_bavail * file_system.f_frsize < LEAST_ROOM_BYTES:
            raise PayloadStoreUnavailable("the payload directory is full")

    def remove_folder(self, folder: str) -> None:
        path = self._root / folder
        try:
            while path.exists():
                # What is missing within it, another process removes at the same moment.
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(path)
        except OSError as error:
            raise PayloadUnwritable(f"cannot remove {folder}") from error


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _make_folder(path: Path) -> None:
    """Like `mkdir -p`, but with 0700 for every folder that it makes."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    _make_durable_folder(path)


def _make_durable_folder(path: Path) -> None:
    """Its name is in its parent, and would go with it when the power does."""
    if not path.is_dir():
        path.mkdir(mode=0o700, exist_ok=True)
        _sync(path.parent)


def _make_durable(path: Path) -> None:
    """obstore renames a finished file into place, but neither syncs it nor sets its mode."""
    path.chmod(0o600)
    _sync(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
