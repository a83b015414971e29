"""Payloads in a directory that all replicas share: local, or a mounted volume."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

from obstore.store import LocalStore

from batches.payloads.directory_writer import DirectoryWriter, sync
from batches.payloads.errors import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError
from batches.payloads.object_store import MARKER_NAME, ObjectPayloads

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MIN_FREE_BYTES = 1 << 20


class DirectoryPayloads(ObjectPayloads):
    """Folders 0700, files 0600, and synced to disk before they count as stored.

    Written by system calls, not by obstore: that creates every folder of a name, also beneath a mount point whose
    volume was unmounted a moment ago.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        try:
            _make_folder(root)
        except OSError as error:
            raise PayloadStoreUnavailable(
                f"the payload directory cannot be made: {error.strerror}"
            ) from error
        super().__init__(LocalStore(root))

    def put(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        with self.open_writer(name) as writer:
            writer.write_parts(parts)
            writer.commit()

    def open_writer(self, name: str) -> DirectoryWriter:
        try:
            return self._open_writer(name)
        except OSError as error:
            raise PayloadWriteError(f"cannot write {name}") from error

    def read_marker(self) -> str | None:
        try:
            return (self._root / MARKER_NAME).read_bytes().decode("ascii", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise PayloadStoreUnavailable("the payload store cannot be read") from error

    def read(self, name: str) -> bytes:
        try:
            return (self._root / name).read_bytes()
        except OSError as error:
            raise PayloadReadError(f"cannot read {name}") from error

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        try:
            with open(self._root / name, "rb", buffering=0) as file:
                data = os.pread(file.fileno(), length, offset)
        except OSError as error:
            raise PayloadReadError(f"cannot read {name}") from error
        if len(data) != length:
            raise PayloadReadError(f"{name} is too short")
        return data

    def check_free_space(self) -> None:
        try:
            file_system = os.statvfs(self._root)
        except OSError as error:
            raise PayloadStoreUnavailable("the payload directory is missing") from error
        if not os.access(self._root, os.W_OK | os.X_OK):
            raise PayloadStoreUnavailable("the payload directory is read-only")
        if file_system.f_bavail * file_system.f_frsize < MIN_FREE_BYTES:
            raise PayloadStoreUnavailable("the payload directory is full")

    def remove_folder(self, folder: str) -> None:
        path = self._root / folder
        try:
            while path.exists():
                # What is missing within it, another process removes at the same moment.
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(path)
        except OSError as error:
            raise PayloadWriteError(f"cannot remove {folder}") from error

    def _open_writer(self, name: str) -> DirectoryWriter:
        try:
            return DirectoryWriter(self._root, name)
        except FileNotFoundError:
            self._make_folders_of(name)
            return DirectoryWriter(self._root, name)

    def _make_folders_of(self, name: str) -> None:
        """Create the folders of a name, but never the root; the top one only for an object directly in it.

        A batch's requests are stored there first. Where that folder is missing, the volume is not mounted: responses
        would stay beneath the mount point for ever.
        """
        first, *deeper = name.split("/")[:-1] or [""]
        folder = self._root / first
        if first and not deeper:
            _make_durable_folder(folder)
        for part in deeper:
            folder /= part
            _make_durable_folder(folder)


def _make_folder(path: Path) -> None:
    """Like `mkdir -p`, but with mode 0700 for every folder that it creates."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    _make_durable_folder(path)


def _make_durable_folder(path: Path) -> None:
    """Create the folder, and sync its parent: the name is in the parent, and would be lost with the power."""
    if not path.is_dir():
        path.mkdir(mode=0o700, exist_ok=True)
        sync(path.parent)
