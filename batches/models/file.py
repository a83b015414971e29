"""A file of OpenAI's Files API: the requests of a batch, or its results."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from batches.models.batch import VALIDATING, Batch
from batches.models.owner import Owner, owner_id_of
from batches.models.public_ids import parse_uuid
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from routing.credentials.credential import Credential

FilePurpose: TypeAlias = Literal["batch", "batch_output"]

FILE_ID_PREFIX = "file-"
INPUT_PURPOSE: FilePurpose = "batch"


def _over() -> Q:
    expired = Q(expires_at__isnull=False, expires_at__lte=Now())
    days = settings.RELAY_BATCH_RETENTION_DAYS
    return expired if days is None else expired | Q(created_at__lt=Now() - timedelta(days=days))


class FileQuerySet(models.QuerySet["File"]):
    def owned_by(self, credential: Credential) -> FileQuerySet:
        """Including those that were deleted or have expired, and are still being removed."""
        return self.filter(owner__name=credential.owner)

    def listed_for(self, credential: Credential) -> FileQuerySet:
        """The same, for a list."""
        return self.filter(owner_id=owner_id_of(credential.owner))

    def present(self) -> FileQuerySet:
        """Neither deleted nor expired, nor older than RELAY_BATCH_RETENTION_DAYS."""
        return self.exclude(_over()).filter(deleted_at=None)

    def expired(self) -> FileQuerySet:
        """Not marked as deleted yet."""
        expired = self.filter(expires_at__isnull=False, expires_at__lte=Now(), deleted_at=None)
        return expired.order_by("expires_at", "id")

    def older_than(self, age: timedelta, *, now: datetime) -> FileQuerySet:
        """Not marked as deleted yet. By the time in their ids, since only these are indexed."""
        milliseconds = int((now - age).timestamp() * 1000)
        return self.filter(id__lt=UUID(int=milliseconds << 80), deleted_at=None).order_by("id")

    def visible_to(self, credential: Credential) -> FileQuerySet:
        return self.owned_by(credential).present()

    def page(self, *, newest_first: bool, after: uuid.UUID | None) -> FileQuerySet:
        """In that order, from behind the file of that id."""
        if newest_first:
            return (self.filter(id__lt=after) if after else self).order_by("-id")
        return (self.filter(id__gt=after) if after else self).order_by("id")

    def removable(
        self, *, after: tuple[datetime | None, uuid.UUID] | None
    ) -> models.QuerySet[File, tuple[datetime | None, uuid.UUID]]:
        """Return `(deleted_at, id)` of deleted files after that place, the earliest deleted first, but those that a
        batch is still being validated from."""
        reading = Batch.objects.filter(VALIDATING, input_file_id=OuterRef("id"))
        rows = self.filter(~Exists(reading), deleted_at__isnull=False)
        if after:
            deleted_at, file_id = after
            rows = rows.filter(deleted_at__gte=deleted_at).exclude(deleted_at=deleted_at, id__lte=file_id)
        return rows.order_by("deleted_at", "id").values_list("deleted_at", "id")


class File(models.Model):
    """The row says that the content is whole: it is written after the content, and removed after it.

    The content is an object of the payload store. A file is gone for its owner once it is deleted or has expired.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    owner = models.ForeignKey(Owner, on_delete=models.PROTECT, related_name="+", db_index=False)
    purpose = models.CharField(max_length=20)
    filename = models.TextField()
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    objects = FileQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["owner", "-id"], name="file_owner_newest"),
            models.Index(fields=["expires_at"], name="file_expiring", condition=Q(expires_at__isnull=False)),
            models.Index(fields=["deleted_at"], name="file_deleted", condition=Q(deleted_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def file_purpose(self) -> FilePurpose:
        return INPUT_PURPOSE if self.purpose == INPUT_PURPOSE else "batch_output"

    @property
    def public_id(self) -> str:
        return file_public_id(self.id)


def parse_file_id(text: str) -> uuid.UUID | None:
    """Return the row's id, or None for what can be no id of ours; a lookup then decides whether it exists."""
    if not text.startswith(FILE_ID_PREFIX):
        return None
    return parse_uuid(text.removeprefix(FILE_ID_PREFIX), length=32)


def file_public_id(file_id: uuid.UUID) -> str:
    return f"{FILE_ID_PREFIX}{file_id.hex}"
