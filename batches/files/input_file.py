"""Looking a file up for its owner, and holding the one that a batch is created from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from batches.files.upload_fields import UPLOAD_PURPOSE
from batches.models import File
from batches.models.file import parse_file_id

if TYPE_CHECKING:
    import uuid

    from routing.credentials.credential import Credential

# SHARE, and not KEY SHARE: deleting is an update of a column that is no key.
_LOCK_FILE = "SELECT FROM batches_file WHERE id = %s FOR SHARE"


def find_file(credential: Credential, text: str) -> File | None:
    """Return the caller's file of that id; None for one that is unknown, a stranger's, deleted or expired."""
    file_id = parse_file_id(text)
    return File.objects.visible_to(credential).filter(id=file_id).first() if file_id else None


def find_input_file(credential: Credential, text: str) -> File | None:
    """Return the caller's file of that id, if a batch can be created from it."""
    file = find_file(credential, text)
    return file if file and file.purpose == UPLOAD_PURPOSE else None


def lock_input_file(file_id: uuid.UUID) -> bool:
    """Hold the file until the caller's transaction ends; False when it was deleted or has expired meanwhile.

    A delete waits, and so does the sweeper: it sees the batch that is created in this transaction, and keeps the
    content while that is validated.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_FILE, [file_id])
    # A statement of its own: it sees what was committed while the lock was waited for.
    return File.objects.present().filter(id=file_id).exists()
