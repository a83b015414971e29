"""The interface of a payload store: objects by name, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class PayloadStore(Protocol):
    """Names are `/`-separated; the first part is a folder that is removed as a whole.

    Errors of the library underneath become those of `batches.payloads.errors`.
    """

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        """Store the parts, one after the other, as one object. Durable on return, and safe to repeat."""

    def read(self, name: str) -> bytes: ...

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes; raises PayloadReadError for fewer."""

    def remove_folder(self, folder: str) -> None:
        """Remove the folder. Safe to repeat, and for one that never existed. PayloadWriteError: a part may be gone."""

    def folders(self) -> Iterator[str]:
        """Yield every top-level folder. Raises PayloadStoreUnavailable, perhaps only when the first one is read."""

    def read_marker(self) -> str | None:
        """Return the marker, which shows processes that they share this store; None when there is none yet."""

    def write_marker(self, mark: str) -> None: ...

    def check_free_space(self) -> None:
        """Raise PayloadStoreUnavailable if it is known, without writing, that nothing can be stored."""
