"""A store with a second one behind it, while payloads move from one to the other."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from batches.payloads.errors import PayloadReadError, PayloadWriteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batches.payloads.store import PayloadStore, PayloadWriter, StoredObject


class _Read(Protocol):
    def __call__(self, store: PayloadStore) -> bytes: ...


class FallbackPayloads:
    """A PayloadStore: what is not in `main` is read from `fallback`. Writes go to `main`, removals to both.

    The marker and the free space are those of `main`.
    """

    def __init__(self, main: PayloadStore, fallback: PayloadStore) -> None:
        self._main = main
        self._fallback = fallback

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        self._main.put(name, parts)

    def open_writer(self, name: str) -> PayloadWriter:
        return self._main.open_writer(name)

    def read(self, name: str) -> bytes:
        return self._read_either(lambda store: store.read(name))

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        return self._read_either(lambda store: store.read_range(name, offset=offset, length=length))

    def objects(self, folder: str) -> Iterator[StoredObject]:
        # The fallback first: what moves meanwhile is then in one of the two lists.
        older = list(self._fallback.objects(folder))
        objects = {stored.name: stored for stored in [*older, *self._main.objects(folder)]}
        yield from objects.values()

    def remove_objects(self, names: Sequence[str]) -> None:
        self._remove_both(lambda store: store.remove_objects(names))

    def remove_unfinished(self, name: str) -> None:
        self._remove_both(lambda store: store.remove_unfinished(name))

    def remove_folder(self, folder: str) -> None:
        self._remove_both(lambda store: store.remove_folder(folder))

    def folders(self) -> Iterator[str]:
        older = set(self._fallback.folders())
        yield from older
        yield from (folder for folder in self._main.folders() if folder not in older)

    def read_marker(self) -> str | None:
        return self._main.read_marker()

    def write_marker(self, mark: str) -> None:
        self._main.write_marker(mark)

    def check_free_space(self) -> None:
        self._main.check_free_space()

    def _read_either(self, read: _Read) -> bytes:
        with contextlib.suppress(PayloadReadError):
            return read(self._main)
        with contextlib.suppress(PayloadReadError):
            return read(self._fallback)
        # It may have moved between the two.
        return read(self._main)

    def _remove_both(self, remove: _Remove) -> None:
        """The fallback first: who copies an object, and still finds it there, has copied it before `main`'s turn.

        Both are tried, whatever the first one says.
        """
        try:
            remove(self._fallback)
        except PayloadWriteError:
            remove(self._main)
            raise
        remove(self._main)


class _Remove(Protocol):
    def __call__(self, store: PayloadStore) -> None: ...
