"""OpenAI's file object.

https://platform.openai.com/docs/api-reference/files/object
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from batches.models.file import FilePurpose
from relaybatch.http.timestamps import EpochSeconds, epoch_seconds, optional_epoch_seconds

if TYPE_CHECKING:
    from batches.models import File


class FileObject(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["file"]
    bytes: int
    created_at: EpochSeconds
    expires_at: Annotated[EpochSeconds | None, Meta(description="Null: kept until it is deleted.")]
    filename: str
    purpose: FilePurpose
    status: Literal["processed"]
    status_details: None


class FileList(Struct, frozen=True, kw_only=True):
    """A page of files."""

    object: Literal["list"]
    data: list[FileObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class FileDeleted(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["file"]
    deleted: bool


def file_object(file: File) -> FileObject:
    return FileObject(
        id=file.public_id,
        object="file",
        bytes=file.size_bytes,
        created_at=epoch_seconds(file.created_at),
        expires_at=optional_epoch_seconds(file.expires_at),
        filename=file.filename,
        purpose=file.file_purpose,
        status="processed",
        status_details=None,
    )
