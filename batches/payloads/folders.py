"""The folders of a payload store: which batch or file each belongs to, and whether its row is there."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

from django.db import connection

from batches.models import Batch, File
from batches.models.file import FILE_ID_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

# A submission stores its payloads before its rows: a folder without a row is an orphan only when it is old.
MIN_ORPHANED_AGE_SECONDS = 3_600
# A file's id is made when its upload begins, and clients may be slow.
MIN_ORPHANED_FILE_AGE_SECONDS = 86_400


class PayloadFolder(NamedTuple):
    """`milliseconds`: when its batch or file was made, since the epoch (UUIDv7)."""

    name: str
    id: uuid.UUID
    is_file: bool

    @property
    def milliseconds(self) -> int:
        return self.id.int >> 80

    def is_beyond_commit(self, *, now_milliseconds: int) -> bool:
        """Whether it is an orphan if it has no row."""
        age = MIN_ORPHANED_FILE_AGE_SECONDS if self.is_file else MIN_ORPHANED_AGE_SECONDS
        return self.milliseconds < now_milliseconds - age * 1000


def parse_folders(names: Iterable[str]) -> list[PayloadFolder]:
    """Those that are named as ours are. Whatever else is in the store is somebody else's."""
    return [folder for folder in map(_parse, names) if folder]


def without_rows(folders: Iterable[PayloadFolder]) -> list[PayloadFolder]:
    folders = list(folders)
    batch_ids = [folder.id for folder in folders if not folder.is_file]
    file_ids = [folder.id for folder in folders if folder.is_file]
    known = {
        False: set(Batch.objects.filter(id__in=batch_ids).values_list("id", flat=True)),
        True: set(File.objects.filter(id__in=file_ids).values_list("id", flat=True)),
    }
    return [folder for folder in folders if folder.id not in known[folder.is_file]]


def is_deleted(folder: PayloadFolder) -> bool:
    """Whether its batch or file was deleted or has expired, or has no row while it is old enough to have one."""
    if folder.is_file:
        files = File.objects.filter(id=folder.id)
        exists, is_present = files.exists(), files.present().exists()
    else:
        batches = Batch.objects.filter(id=folder.id)
        exists, is_present = batches.exists(), batches.filter(deleted_at=None).exists()
    return not is_present and (exists or is_old(folder))


def is_old(folder: PayloadFolder) -> bool:
    return folder.is_beyond_commit(now_milliseconds=database_milliseconds())


def database_milliseconds() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        milliseconds: int = cursor.fetchone()[0]
    return milliseconds


def _parse(name: str) -> PayloadFolder | None:
    text = name.removeprefix(FILE_ID_PREFIX)
    try:
        id_ = uuid.UUID(hex=text)
    except ValueError:
        return None
    return PayloadFolder(name, id_, is_file=text != name) if id_.hex == text else None
