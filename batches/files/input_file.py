"""Looking a file up for its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batches.models import File
from batches.models.file import parse_file_id

if TYPE_CHECKING:
    from routing.credentials.credential import Credential


def find_file(credential: Credential, text: str) -> File | None:
    """Return the caller's file of that id; None for one that is unknown, a stranger's, deleted or expired."""
    file_id = parse_file_id(text)
    return File.objects.visible_to(credential).filter(id=file_id).first() if file_id else None
