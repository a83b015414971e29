"""The small interface that a payload store offers: objects by name, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class PayloadStore(Protocol):
    """Names are `/`-separated; the first part is a folder that is removed as a whole.

    Errors of the library underneath become those of `batches.payloads.errors`.
    """

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        """Stores the parts, one after the other, as one object. Durable on return, and safe to repeat."""

    def read(self, name: str) -> bytes: ...

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        """Exactly `length` bytes, else PayloadUnreadable."""

    def remove_folder(self, folder: str) -> None:
        """Safe to call twice, and for a folder that never was. PayloadUnwritable: perhaps a part of it is gone."""

    def folders(self) -> Iterator[str]:
        """Every top-level folder; PayloadStoreUnavailable, perhaps not before the first is asked for."""

    def read_marker(self) -> str | None:
        """The marker by which processes see that they share this store; None when there is none yet."""

    def write_marker(self, mark: str) -> None: ...

    def check_free_space(self) -> None:
        """Raises PayloadStoreUnavailable where it can be told, without writing, that nothing can be stored."""
