"""What the page of a batch shows of its files: the fields of batches whose requests come in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from batches.dialects.openai.endpoints import ENDPOINT_BY_SHAPE
from batches.models.file import file_public_id

if TYPE_CHECKING:
    import uuid

    from django.utils.safestring import SafeString

    from batches.models import Batch

FILE_FIELDS = (
    *("endpoint", "input_file", "output_file", "error_file"),
    *("in_progress_at", "finalized_at", "validation_errors"),
)
FILE_FIELDSET: tuple[str, dict[str, Any]] = (
    "Files",
    {
        "fields": (
            "endpoint",
            ("input_file", "output_file", "error_file"),
            ("in_progress_at", "finalized_at"),
            "validation_errors",
        )
    },
)


class BatchFilesMixin:
    """Displays for the fields of FILE_FIELDS."""

    @admin.display(description="endpoint")
    def endpoint(self, batch: Batch) -> str:
        return ENDPOINT_BY_SHAPE[batch.shape]

    @admin.display(description="input file")
    def input_file(self, batch: Batch) -> SafeString | str:
        return _file_link(batch.input_file_id)

    @admin.display(description="output file")
    def output_file(self, batch: Batch) -> SafeString | str:
        return _file_link(batch.output_file_id if batch.finalized_at else None)

    @admin.display(description="error file")
    def error_file(self, batch: Batch) -> SafeString | str:
        return _file_link(batch.error_file_id if batch.finalized_at else None)

    @admin.display(description="errors of the input file")
    def validation_errors(self, batch: Batch) -> SafeString | str:
        """Codes, lines and messages of ours; nothing of the file itself."""
        rows = [
            (f"line {error['line']}" if error["line"] else "the file", error["code"], error["message"])
            for error in batch.file_errors or []
        ]
        return format_html_join(mark_safe("<br>"), "{}: {} &ndash; {}", rows) or "-"


def _file_link(file_id: uuid.UUID | None) -> SafeString | str:
    if file_id is None:
        return "-"
    url = reverse("admin:batches_file_change", args=[file_id])
    return format_html('<a href="{}">{}</a>', url, file_public_id(file_id))
