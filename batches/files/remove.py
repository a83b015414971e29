"""Deleting files: gone for their owner at once, removed by the sweeper in small steps."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from batches.models import File
from batches.payloads import PayloadStoreUnavailable, PayloadWriteError, open_store
from relaybatch.db.clock import database_now
from relaybatch.db.isolation import repeat_for_seconds, run_isolated

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from batches.models.file import FileQuerySet

logger = logging.getLogger(__name__)

FILES_PER_STEP = 20
MAX_SECONDS = 5.0


def delete_file(file_id: uuid.UUID) -> bool:
    """Mark the file as deleted; False when it was, or has expired. Waits for a batch that is created from it."""
    return bool(File.objects.present().filter(id=file_id).update(deleted_at=Now()))


class FileRemoval:
    """Each `run` does steps for a few seconds. What cannot be removed is skipped until the next round."""

    def __init__(self) -> None:
        self._removed_after: tuple[datetime | None, uuid.UUID] | None = None

    def run(self) -> None:
        mark_files_over()
        repeat_for_seconds(self._run_step, MAX_SECONDS)

    def _run_step(self) -> bool:
        """Return whether there may be more."""
        step = list(File.objects.removable(after=self._removed_after)[:FILES_PER_STEP])
        for _, file_id in step:
            run_isolated("remove_file", partial(_remove_file, file_id), file_id=file_id)
        self._removed_after = step[-1] if len(step) == FILES_PER_STEP else None
        return self._removed_after is not None


def mark_files_over() -> None:
    """Mark as deleted what has expired, or is older than RELAY_BATCH_RETENTION_DAYS.

    A file is removed only when it is marked and no batch is validated from it. A batch in creation holds the file's
    row (`store_file_batch`): the mark comes after its commit, or it finds the mark.
    """
    _mark(File.objects.expired())
    days = settings.RELAY_BATCH_RETENTION_DAYS
    if days is not None:
        _mark(File.objects.older_than(timedelta(days=days), now=database_now()))


def _mark(files: FileQuerySet) -> None:
    with transaction.atomic():
        step = files.select_for_update(skip_locked=True)
        ids = list(step.values_list("id", flat=True)[: FILES_PER_STEP * 10])
        File.objects.filter(id__in=ids).update(deleted_at=Now())


def _remove_file(file_id: uuid.UUID) -> None:
    """Remove content and row, in this order. Does nothing while the payload store is unavailable."""
    try:
        # A missing folder counts as removed. Checked before and after: the store's volume may be mounted or unmounted
        # at this moment.
        open_store().check()
        open_store().discard_file(file_id)
        open_store().check()
    except (PayloadWriteError, PayloadStoreUnavailable) as error:
        logger.warning("file content not removed", extra={"file_id": file_id, "reason": str(error)})
        return
    File.objects.filter(id=file_id).delete()
