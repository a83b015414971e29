"""Writing one object of an object store, in the parts of a multipart upload when it is large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import obstore

from batches.payloads.errors import PayloadWriteError
from batches.payloads.object_client import raised_as

if TYPE_CHECKING:
    from types import TracebackType

    from obstore.store import ObjectStore

# The smallest part that S3 takes is 5 MiB.
PART_BYTES = 8 << 20
MAX_PARTS_IN_MEMORY = 2


class ObjectWriter:
    """A PayloadWriter. An upload that is not completed shows no object; its parts stay with the store until that
    aborts them (S3: a lifecycle rule for incomplete multipart uploads).
    """

    def __init__(self, store: ObjectStore, name: str) -> None:
        self._name = name
        with raised_as(PayloadWriteError, f"cannot write {self._name}"):
            self._object = obstore.open_writer(
                store, name, buffer_size=PART_BYTES, max_concurrency=MAX_PARTS_IN_MEMORY
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Without a commit, the upload is left alone: closing it would complete it."""

    def write(self, data: bytes | memoryview) -> None:
        with raised_as(PayloadWriteError, f"cannot write {self._name}"):
            self._object.write(data)

    def commit(self) -> None:
        with raised_as(PayloadWriteError, f"cannot write {self._name}"):
            self._object.close()
