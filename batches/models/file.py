"""A file of OpenAI's Files API: the requests of a batch, or its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from batches.models.owner import Owner
from batches.models.public_ids import parse_uuid
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid

    from routing.credentials.credential import Credential

FilePurpose: TypeAlias = Literal["batch", "batch_output"]

FILE_ID_PREFIX = "file-"


class FileQuerySet(models.QuerySet["File"]):
    def owned_by(self, credential: Credential) -> FileQuerySet:
        """Including those that were deleted or have expired, and are still being removed."""
        return self.filter(owner__name=credential.owner)

    def present(self) -> FileQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), deleted_at=None)

    def visible_to(self, credential: Credential) -> FileQuerySet:
        return self.owned_by(credential).present()


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
    def public_id(self) -> str:
        return file_public_id(self.id)


def parse_file_id(text: str) -> uuid.UUID | None:
    """Return the row's id, or None for what can be no id of ours; a lookup then decides whether it exists."""
    if not text.startswith(FILE_ID_PREFIX):
        return None
    return parse_uuid(text.removeprefix(FILE_ID_PREFIX), length=32)


def file_public_id(file_id: uuid.UUID) -> str:
    return f"{FILE_ID_PREFIX}{file_id.hex}"
