"""Writing one file of the payload directory: under a temporary name until it is complete and synced to disk."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING, Self

from batches.payloads.errors import PayloadWriteError
from batches.payloads.store import UNFINISHED_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

BUFFER_BYTES = 1 << 16


class DirectoryWriter:
    """A PayloadWriter. The file's folder has to be there; `root` is the directory of the store."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._name = name
        self._path = root / name
        # Processes of several machines, or containers, share a volume: their ids are no names.
        self._unfinished = self._path.with_name(f"{self._path.name}{UNFINISHED_MARK}{uuid.uuid4().hex}")
        self._root_before = device_and_inode(root)
        self._file = open(self._unfinished, "wb", buffering=BUFFER_BYTES, opener=_open_private)  # noqa: SIM115 -- closed by __exit__
        self._is_committed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        if not self._is_committed:
            with contextlib.suppress(OSError):
                self._unfinished.unlink()

    def write(self, data: bytes | memoryview) -> None:
        with self._write_errors():
            self._file.write(data)

    def write_parts(self, parts: Iterable[bytes | memoryview]) -> None:
        with self._write_errors():
            self._file.writelines(parts)

    def commit(self) -> None:
        with self._write_errors():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._unfinished.replace(self._path)
            self._is_committed = True
            sync(self._path.parent)
            if device_and_inode(self._root) != self._root_before:
                raise PayloadWriteError(f"the volume was unmounted while {self._name} was written")

    @contextlib.contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PayloadWriteError(f"cannot write {self._name}") from error


def device_and_inode(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
