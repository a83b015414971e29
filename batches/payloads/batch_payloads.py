"""Payloads of batches and files by name, in one store or in two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batches.models import PayloadStoreMark
from batches.models.file import file_public_id
from batches.payloads.errors import PayloadReadError
from batches.payloads.fallback import FallbackPayloads
from batches.payloads.marker import agreed_marker, check_fallback_marker, check_marker

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from batches.payloads.store import PayloadStore, PayloadWriter

RESPONSES_PER_FOLDER = 1000


class BatchPayloads:
    def __init__(self, main: PayloadStore, *, fallback: PayloadStore | None = None) -> None:
        self._store = FallbackPayloads(main, fallback) if fallback else main
        self._fallback = fallback

    def put_requests(self, batch_id: uuid.UUID, requests: Sequence[bytes | memoryview]) -> None:
        self._store.put(f"{batch_id.hex}/requests", requests)

    def open_requests_writer(self, batch_id: uuid.UUID) -> PayloadWriter:
        return self._store.open_writer(f"{batch_id.hex}/requests")

    def remove_unfinished_requests(self, batch_id: uuid.UUID) -> None:
        """Remove what killed writers left. One that still writes gets a PayloadWriteError when it commits."""
        self._store.remove_unfinished(f"{batch_id.hex}/requests")

    def read_request(self, batch_id: uuid.UUID, *, offset: int, length: int) -> bytes:
        return self._store.read_range(f"{batch_id.hex}/requests", offset=offset, length=length)

    def read_requests(self, batch_id: uuid.UUID) -> bytes:
        return self._store.read(f"{batch_id.hex}/requests")

    def put_response(self, batch_id: uuid.UUID, *, idx: int, claim_no: int, body: bytes) -> None:
        self._store.put(_response_name(batch_id, idx, claim_no), [body])

    def read_response(self, batch_id: uuid.UUID, *, idx: int, claim_no: int) -> bytes:
        return self._store.read(_response_name(batch_id, idx, claim_no))

    def read_response_start(self, batch_id: uuid.UUID, *, idx: int, claim_no: int, length: int) -> bytes:
        """Return the first `length` bytes; raises PayloadReadError for a shorter response."""
        return self._store.read_range(_response_name(batch_id, idx, claim_no), offset=0, length=length)

    def read_responses(self, batch_id: uuid.UUID, refs: Iterable[tuple[int, int]]) -> list[bytes | None]:
        """Read the responses of a page of `(idx, claim_no)`, in order; None for one that cannot be read."""
        return [self._response_or_none(batch_id, idx, claim_no) for idx, claim_no in refs]

    def discard(self, batch_id: uuid.UUID) -> None:
        self._store.remove_folder(batch_id.hex)

    def open_file_writer(self, file_id: uuid.UUID) -> PayloadWriter:
        return self._store.open_writer(_file_name(file_id))

    def read_file(self, file_id: uuid.UUID, *, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes; raises PayloadReadError for fewer."""
        return self._store.read_range(_file_name(file_id), offset=offset, length=length)

    def discard_file(self, file_id: uuid.UUID) -> None:
        self._store.remove_folder(file_public_id(file_id))

    def folders(self) -> Iterator[str]:
        return self._store.folders()

    def check(self, expected: str | None = None) -> None:
        """Raise PayloadStoreUnavailable unless this is the store that the deployment's other processes use.

        The fallback is a part of it: removed is only what is gone from both.
        The first process to check writes the marker; a store that already has one is adopted by an empty database.
        `expected`: the marker's value, if the caller has just read it from the database.
        """
        expected = expected or agreed_marker(self._store)
        check_marker(self._store, expected)
        if self._fallback:
            check_fallback_marker(self._fallback, expected)

    def owned_since(self) -> datetime | None:
        """Check the store, and return since when this database owns it; None where another database may use it too."""
        self.check()
        mark = PayloadStoreMark.objects.get()
        return None if mark.adopted else mark.created_at

    def check_free_space(self) -> None:
        """Check the store, and that nothing is known which would keep payloads from being stored."""
        self.check()
        self._store.check_free_space()

    def _response_or_none(self, batch_id: uuid.UUID, idx: int, claim_no: int) -> bytes | None:
        try:
            return self.read_response(batch_id, idx=idx, claim_no=claim_no)
        except PayloadReadError:
            return None


def _file_name(file_id: uuid.UUID) -> str:
    # The prefix keeps a sweeper of a release without files from taking the folder for that of a batch.
    return f"{file_public_id(file_id)}/content"


def _response_name(batch_id: uuid.UUID, idx: int, claim_no: int) -> str:
    # Folders of a thousand, since directories of 50,000 files are slow to list.
    return f"{batch_id.hex}/responses/{idx // RESPONSES_PER_FOLDER}/{idx}-{claim_no}"
