"""A new file: its content in the payload store first, then its row. Both exist at the end, or neither does."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from batches.models import File
from batches.payloads import PayloadStoreUnavailable, PayloadWriteError, open_store
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from relaybatch.http.errors import Unavailable

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator
    from datetime import datetime

    from batches.models.file import FilePurpose
    from batches.payloads.batch_payloads import BatchPayloads
    from batches.payloads.store import PayloadWriter

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class NewContent:
    """The content of a file whose row is not there yet. `write` it, `commit` it, then store the row within `row`."""

    _store: BatchPayloads
    _writer: PayloadWriter
    _row_may_exist: bool = field(default=False, init=False)

    def write(self, piece: bytes) -> None:
        self._writer.write(piece)

    def commit(self) -> None:
        self._writer.commit()
        # Checked again: the volume may have been unmounted just before.
        self._store.check()

    @contextlib.contextmanager
    def row(self) -> Iterator[None]:
        """Run the transaction that inserts the file's row."""
        with transaction.atomic():
            yield
            # A commit that fails may have succeeded before the connection dropped: then the content is needed.
            self._row_may_exist = True

    @property
    def is_needed(self) -> bool:
        return self._row_may_exist


@contextlib.contextmanager
def new_content(file_id: uuid.UUID) -> Iterator[NewContent]:
    """Open a file's content for writing; an error within discards it. Raises Unavailable: the store can't take it.

    What a crash leaves is an object without a row, which the sweeper removes.
    """
    content: NewContent | None = None
    try:
        store = open_store()
        store.check()
        with store.open_file_writer(file_id) as writer:
            content = NewContent(store, writer)
            yield content
    except (PayloadStoreUnavailable, PayloadWriteError) as error:
        _discard(file_id)
        logger.exception("file not stored", extra={"file_id": file_id})
        raise Unavailable(
            "The file could not be stored; try again later.", code="store_unavailable"
        ) from error
    except BaseException:
        if content and not content.is_needed:
            _discard(file_id)
        raise


def insert_file(
    file_id: uuid.UUID,
    *,
    owner_id: int,
    purpose: FilePurpose,
    filename: str,
    size_bytes: int,
    created_at: datetime,
    lifetime_seconds: int | None,
) -> File:
    """Insert the row of a file whose content is stored, in the caller's transaction."""
    return File.objects.create(
        id=file_id,
        owner_id=owner_id,
        purpose=purpose,
        filename=filename,
        size_bytes=size_bytes,
        created_at=created_at,
        expires_at=created_at + timedelta(seconds=lifetime_seconds) if lifetime_seconds else None,
    )


def _discard(file_id: uuid.UUID) -> None:
    # As far as it can be done now: the sweeper does the rest.
    with contextlib.suppress(PayloadWriteError, PayloadStoreUnavailable, *DATABASE_UNAVAILABLE):
        open_store().discard_file(file_id)
