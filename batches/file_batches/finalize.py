"""Finalizing a batch: its results become an output file and an error file, once all of its items are final.

Killed at any point, it begins again, and writes over what it has written. The files' rows and the batch's are written
by one transaction, only while the batch has no files yet.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.functional import cached_property

from batches.dialects.openai.output_lines import is_success, render_output_line
from batches.dialects.results.json_lines import coalesce_chunks
from batches.files.new_file import insert_file
from batches.models import Batch
from batches.models.public_ids import public_id
from batches.payloads import PayloadReadError, open_store
from batches.results.result_rows import ResultFilter
from batches.results.results import iter_results
from relaybatch.db.clock import database_now
from relaybatch.ids import uuid7
from routing.failpoints import failpoint

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from batches.payloads import BatchPayloads
    from batches.payloads.store import PayloadWriter

logger = logging.getLogger(__name__)

# For so long, counted from the first try of this process, a response that cannot be read is tried again. Then it is an
# error line.
MAX_UNREADABLE_SECONDS = 300.0
_unreadable_since: dict[uuid.UUID, float] = {}


class ResultFile:
    """One of the two files. Its object is begun with the first line, so there is none of no lines."""

    def __init__(self, file_id: uuid.UUID, store: BatchPayloads, stack: contextlib.ExitStack) -> None:
        self.id = file_id
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


def finalize_batch(batch_id: uuid.UUID, *, clock: Callable[[], float] = time.monotonic) -> None:
    """Write the batch's files. Safe to repeat, and at once.

    Raises PayloadReadError, PayloadWriteError and PayloadStoreUnavailable, after which it can be tried again.
    """
    batch = Batch.objects.finalizing().filter(id=batch_id).first()
    if batch is None:
        return
    store = open_store()
    store.check()
    with contextlib.ExitStack() as stack:
        output, errors = (ResultFile(file_id, store, stack) for file_id in _choose_ids(batch))
        now = clock()
        may_be_unreadable = _has_been_tried_for_long(batch_id, now)
        _write_lines(batch, output, errors, may_be_unreadable=may_be_unreadable, now=now)
        failpoint("in_finalizing")
        if not Batch.objects.finalizing().filter(id=batch_id).exists():
            return  # another process was faster: what it has written stays
        output.commit()
        errors.commit()
        # The volume may have been unmounted meanwhile, and responses may have looked unreadable for that.
        store.check()
    failpoint("after_output_files")
    _store_rows(batch, output, errors)


def _choose_ids(batch: Batch) -> tuple[uuid.UUID, uuid.UUID]:
    """Return the ids of output and error file, the same at each try: what a killed try has written is written over."""
    waiting = Batch.objects.finalizing().filter(id=batch.id)
    waiting.filter(output_file_id=None).update(output_file_id=uuid7(), error_file_id=uuid7())
    chosen = Batch.objects.values_list("output_file_id", "error_file_id").get(id=batch.id)
    output_id, error_id = chosen
    if output_id is None or error_id is None:  # finalized at this moment by another process
        return uuid7(), uuid7()
    return output_id, error_id


def _has_been_tried_for_long(batch_id: uuid.UUID, now: float) -> bool:
    return now - _unreadable_since.get(batch_id, now) >= MAX_UNREADABLE_SECONDS


def _write_lines(
    batch: Batch, output: ResultFile, errors: ResultFile, *, may_be_unreadable: bool, now: float
) -> None:
    for results in iter_results(batch.id, ResultFilter()):
        if not may_be_unreadable and any(result.is_unreadable for result in results):
            _unreadable_since.setdefault(batch.id, now)
            raise PayloadReadError("a stored response cannot be read")
        for file, lines in (
            (output, [result for result in results if is_success(result)]),
            (errors, [result for result in results if not is_success(result)]),
        ):
            file.write(coalesce_chunks(part for line in lines for part in render_output_line(line)))


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
    _unreadable_since.pop(batch.id, None)
    if finalized:
        logger.info("batch finalized", extra={"batch_id": batch.id})


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
