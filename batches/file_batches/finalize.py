"""Finalizing a batch: its results become an output file and an error file, once all of its items are final.

Killed at any point, it begins again. The files' rows and the batch's are written by one transaction, only while the
batch has no files yet; objects that were written in vain have no row, and the sweeper removes them.
"""

from __future__ import annotations

import contextlib
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.functional import cached_property

from batches.dialects.openai.output_lines import is_success, render_output_line
from batches.dialects.results.json_lines import coalesce_chunks
from batches.files.new_file import insert_file
from batches.models import Batch
from batches.models.public_ids import public_id
from batches.payloads import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.results.result_rows import ResultFilter
from batches.results.results import iter_results
from relaybatch.db.clock import database_now
from relaybatch.ids import uuid7
from routing.failpoints import failpoint

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable
    from datetime import datetime

    from batches.payloads import BatchPayloads
    from batches.payloads.store import PayloadWriter
    from batches.results.results import Result

logger = logging.getLogger(__name__)

# For so long after the batch's end, a response that cannot be read is tried again; then it becomes an error line.
MAX_UNREADABLE = timedelta(minutes=5)


class ResultFile:
    """One of the two files. Its object is begun with the first line, so there is none of no lines."""

    def __init__(self, store: BatchPayloads, stack: contextlib.ExitStack) -> None:
        self.id = uuid7()
        self.size_bytes = 0
        self._store = store
        self._stack = stack

    def write(self, parts: Iterable[bytes]) -> None:
        for part in parts:
            self._writer.write(part)
            self.size_bytes += len(part)

    def commit(self) -> None:
        if self.size_bytes:
            self._writer.commit()

    @cached_property
    def _writer(self) -> PayloadWriter:
        return self._stack.enter_context(self._store.open_file_writer(self.id))


def finalize_batch(batch_id: uuid.UUID) -> None:
    """Write the batch's files. Safe to repeat, and at once.

    Raises PayloadReadError, PayloadWriteError and PayloadStoreUnavailable, after which it can be tried again.
    """
    batch = Batch.objects.finalizing().filter(id=batch_id).first()
    if batch is None:
        return
    store = open_store()
    store.check()
    with contextlib.ExitStack() as stack:
        output, errors = ResultFile(store, stack), ResultFile(store, stack)
        _write_lines(batch, output, errors)
        failpoint("in_finalizing")
        output.commit()
        errors.commit()
        # The volume may have been unmounted meanwhile, and responses may have looked unreadable for that.
        store.check()
    failpoint("after_output_files")
    _store_rows(batch, output, errors)


def _write_lines(batch: Batch, output: ResultFile, errors: ResultFile) -> None:
    for results in iter_results(batch.id, ResultFilter()):
        _require_readable(batch, results)
        for file, lines in (
            (output, [result for result in results if is_success(result)]),
            (errors, [result for result in results if not is_success(result)]),
        ):
            file.write(coalesce_chunks(part for line in lines for part in render_output_line(line)))


def _require_readable(batch: Batch, results: Iterable[Result]) -> None:
    if not any(result.is_unreadable for result in results):
        return
    if batch.ended_at is None or database_now() - batch.ended_at < MAX_UNREADABLE:
        raise PayloadReadError("a stored response cannot be read")


def _store_rows(batch: Batch, output: ResultFile, errors: ResultFile) -> None:
    now = database_now()
    with transaction.atomic():
        finalized = (
            Batch.objects.finalizing()
            .filter(id=batch.id)
            .update(
                finalized_at=now,
                output_file_id=output.id if output.size_bytes else None,
                error_file_id=errors.id if errors.size_bytes else None,
            )
        )
        if finalized:
            _insert_row(batch, output, name="output", now=now)
            _insert_row(batch, errors, name="errors", now=now)
    if finalized:
        logger.info("batch finalized", extra={"batch_id": batch.id})
        return
    for file in (output, errors):
        with contextlib.suppress(PayloadWriteError, PayloadStoreUnavailable):
            open_store().discard_file(file.id)


def _insert_row(batch: Batch, file: ResultFile, *, name: str, now: datetime) -> None:
    if file.size_bytes:
        insert_file(
            file.id,
            owner_id=batch.owner_id,
            purpose="batch_output",
            filename=f"{public_id(batch.dialect, batch.id)}_{name}.jsonl",
            size_bytes=file.size_bytes,
            created_at=now,
            lifetime_seconds=batch.output_lifetime_seconds,
        )
