"""The interface of a payload store: objects by name, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

MARKER_NAME = ".relaybatch-store"
# In the temporary name of an object that is being written, between its name and what makes it unique.
UNFINISHED_MARK = "~"


class StoredObject(NamedTuple):
    name: str
    size_bytes: int


class PayloadWriter(Protocol):
    """An object that is being written. It is there, whole and durable, when `commit` returns, and not before.

    A context manager: leaving it without a commit discards what was written. Memory does not grow with the object, and
    no database connection is held between two calls. Both methods raise PayloadWriteError.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, data: bytes | memoryview) -> None: ...

    def commit(self) -> None: ...


class PayloadStore(Protocol):
    """Names are `/`-separated; the first part is a folder that is removed as a whole.

    Errors of the library underneath become those of `batches.payloads.errors`.
    """

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        """Store the parts, one after the other, as one object. Durable on return, and safe to repeat."""

    def open_writer(self, name: str) -> PayloadWriter:
        """Begin to write an object of any size, piece by piece. Two writers of one name do not disturb each other."""

    def read(self, name: str) -> bytes: ...

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes, perhaps none; raises PayloadReadError for fewer, or without the object."""

    def objects(self, folder: str) -> Iterator[StoredObject]:
        """Yield the folder's objects, without those that are being written. Raises PayloadStoreUnavailable."""

    def remove_objects(self, names: Sequence[str]) -> None:
        """Remove the objects, and the folders that are empty then. Raises PayloadWriteError: some may be gone."""

    def remove_unfinished(self, name: str) -> None:
        """Remove what killed writers of this object left. One that still writes it gets a PayloadWriteError."""

    def remove_folder(self, folder: str) -> None:
        """Remove the folder. Safe to repeat, and for one that never existed. PayloadWriteError: a part may be gone."""

    def folders(self) -> Iterator[str]:
        """Yield every top-level folder. Raises PayloadStoreUnavailable, perhaps only when the first one is read."""

    def read_marker(self) -> str | None:
        """Return the marker, which shows processes that they share this store; None when there is none yet."""

    def write_marker(self, mark: str) -> None: ...

    def check_free_space(self) -> None:
        """Raise PayloadStoreUnavailable if it is known, without writing, that nothing can be stored."""
