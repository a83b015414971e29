"""Payloads in a directory that all replicas share: local, or a mounted volume."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from typing import TYPE_CHECKING

from batches.payloads.directory_writer import DirectoryWriter, sync
from batches.payloads.errors import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError
from batches.payloads.store import MARKER_NAME, UNFINISHED_MARK, StoredObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MIN_FREE_BYTES = 1 << 20


class DirectoryPayloads:
    """Folders 0700, files 0600, and synced to disk before they count as stored.

    By system calls, not by obstore: that creates every folder of a name, also beneath a mount point whose
    volume was unmounted a moment ago.

    `make_root`: create the directory when it is missing. `has_fallback`: the requests of a batch may be in another
    store, so that a response may be the first object in its batch's folder here.
    """

    def __init__(self, root: Path, *, make_root: bool = True, has_fallback: bool = False) -> None:
        self._root = root
        self._has_fallback = has_fallback
        if make_root:
            try:
                _make_folder(root)
            except OSError as error:
                raise PayloadStoreUnavailable(
                    f"the payload directory cannot be made: {error.strerror}"
                ) from error

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

    def write_marker(self, mark: str) -> None:
        self.put(MARKER_NAME, [mark.encode("ascii")])

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

    def folders(self) -> Iterator[str]:
        try:
            with os.scandir(self._root) as entries:
                yield from (entry.name for entry in entries if entry.is_dir())
        except OSError as error:
            raise PayloadStoreUnavailable("the payload store cannot be listed") from error

    def objects(self, folder: str) -> Iterator[StoredObject]:
        try:
            for path in (self._root / folder).rglob("*"):
                # What is missing by now, another process removes at the same moment.
                with contextlib.suppress(FileNotFoundError):
                    if UNFINISHED_MARK not in path.name and not path.is_dir():
                        yield StoredObject(str(path.relative_to(self._root)), path.stat().st_size)
        except OSError as error:
            raise PayloadStoreUnavailable("the payload store cannot be listed") from error

    def remove_objects(self, names: Sequence[str]) -> None:
        try:
            for name in names:
                (self._root / name).unlink(missing_ok=True)
            for name in names:
                self._remove_empty_folders(self._root / name)
        except OSError as error:
            raise PayloadWriteError("cannot remove objects") from error

    def remove_unfinished(self, name: str) -> None:
        path = self._root / name
        try:
            for unfinished in path.parent.glob(f"{glob.escape(path.name)}{UNFINISHED_MARK}*"):
                unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise PayloadWriteError(f"cannot remove what is left of {name}") from error

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

        A batch's requests are stored there first, unless there is a fallback. Where that folder is missing, the volume
        is not mounted: responses would stay beneath the mount point for ever.
        """
        first, *deeper = name.split("/")[:-1] or [""]
        folder = self._root / first
        if first and not deeper:
            _make_durable_folder(folder)
        elif self._has_fallback:
            self._make_folder_on_volume(folder)
        for part in deeper:
            folder /= part
            _make_durable_folder(folder)

    def _make_folder_on_volume(self, folder: Path) -> None:
        """The marker is read afterwards: the volume may have been unmounted just before the folder was made."""
        if not folder.is_dir():
            _make_durable_folder(folder)
            if self.read_marker() is None:
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def _remove_empty_folders(self, path: Path) -> None:
        for folder in path.parents:
            if folder == self._root:
                return
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return  # not empty


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
