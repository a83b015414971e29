"""Validating a batch: from the lines of its input file to items, or to `failed` with what is wrong in each line.

The file and the requests are read and written outside of any transaction. One transaction makes the items, only while
the batch is still waiting for them: a validation that was killed begins again, and of two at once the second changes
nothing.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from batches.completion.batch_end import lock_exclusive
from batches.dialects.openai.endpoints import ENDPOINT_BY_SHAPE
from batches.file_batches.check_file import CheckedFile, check_file
from batches.file_batches.input_line import InputError, InputErrorCode
from batches.file_batches.line_reader import iter_lines
from batches.models import Batch, File
from batches.payloads import open_store
from batches.publishing.publish import request_publish
from batches.submission.owner_quota import check_open_item_quota, lock_quota
from batches.submission.store_rows import copy_items
from relaybatch.http.errors import TooManyRequests
from routing.failpoints import failpoint

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from batches.payloads import BatchPayloads

logger = logging.getLogger(__name__)

# Nobody but a person with access to the database can remove the row of a file that is waited for.
FILE_MISSING = CheckedFile(
    errors=[InputError(InputErrorCode.INPUT_FILE_MISSING, None, "The input file is gone.", "input_file_id")]
)


class NoLongerWaiting(Exception):  # noqa: N818 -- nothing is wrong
    """The batch was cancelled, has expired, or was validated by another process meanwhile."""


def validate_batch(batch_id: uuid.UUID) -> None:
    """Validate the batch, unless that was done, or it was cancelled or has expired. Safe to repeat, and at once.

    Raises PayloadReadError, PayloadWriteError and PayloadStoreUnavailable, after which it can be tried again.
    """
    batch = Batch.objects.validating().filter(id=batch_id).first()
    if batch is None:
        return
    file = File.objects.filter(id__in=[batch.input_file_id]).first()
    try:
        checked = _check_and_pack(batch, file) if file else FILE_MISSING
    except NoLongerWaiting:
        return
    failpoint("after_packing")
    if checked.errors:
        _fail(batch, checked.errors)
    else:
        _store_items(batch, checked)
    failpoint("after_validation")


def _check_and_pack(batch: Batch, file: File) -> CheckedFile:
    store = open_store()
    store.check()
    with store.open_requests_writer(batch.id) as writer:
        checked = check_file(
            iter_lines(
                partial(_read_while_waiting, batch, store, file.id),
                size_bytes=file.size_bytes,
                max_line_bytes=settings.RELAY_MAX_REQUEST_BYTES,
            ),
            writer=writer,
            endpoint=ENDPOINT_BY_SHAPE[batch.shape],
            max_items=settings.RELAY_BATCH_MAX_ITEMS,
            max_line_bytes=settings.RELAY_MAX_REQUEST_BYTES,
        )
        failpoint("in_validation")
        if not checked.errors:
            _require_waiting(
                batch
            )  # else another process has stored the requests, and items that point into them
            writer.commit()
            # The volume may have been unmounted meanwhile.
            store.check()
            store.remove_unfinished_requests(batch.id)
    return checked


def _read_while_waiting(
    batch: Batch, store: BatchPayloads, file_id: uuid.UUID, offset: int, length: int
) -> bytes:
    """Read a piece. Raises NoLongerWaiting once the batch is cancelled or has expired: others wait behind it."""
    _require_waiting(batch)
    return store.read_file(file_id, offset=offset, length=length)


def _require_waiting(batch: Batch) -> None:
    if not Batch.objects.validating().filter(id=batch.id).exists():
        raise NoLongerWaiting


def _store_items(batch: Batch, checked: CheckedFile) -> None:
    try:
        with transaction.atomic():
            lock_exclusive(batch.id)
            if not _begin(batch, total_items=len(checked.lengths)):
                return
            copy_items(batch, custom_ids=checked.custom_ids, lengths=checked.lengths)
            lock_quota(batch.owner_id)
            check_open_item_quota(batch.owner_id, 0)
            transaction.on_commit(partial(request_publish, batch.owner_id), robust=True)
    except TooManyRequests as error:
        _fail(batch, [InputError(InputErrorCode.TOO_MANY_OPEN_ITEMS, None, error.message)])
    else:
        logger.info("batch validated", extra={"batch_id": batch.id, "items": len(checked.lengths)})


def _begin(batch: Batch, *, total_items: int) -> bool:
    waiting = Batch.objects.validating().filter(id=batch.id)
    return bool(waiting.update(total_items=total_items, in_progress_at=Now()))


def _fail(batch: Batch, errors: Sequence[InputError]) -> None:
    """End the batch with these errors, unless it was cancelled or has expired meanwhile."""
    with transaction.atomic():
        lock_exclusive(batch.id)
        failed = (
            Batch.objects.validating()
            .filter(id=batch.id)
            .update(
                file_errors=[error._asdict() for error in errors],
                ended_at=Now(),
                finalized_at=Now(),
                final_counts={},
            )
        )
    if failed:
        logger.info("batch failed validation", extra={"batch_id": batch.id, "code": errors[0].code})
