"""The files' pages: whose they are, how large, and how long they are kept. Contents are shown nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.template.defaultfilters import filesizeformat

from batches.admin.display_names import filter_by_id_or_owner, owner_display_name, owner_display_names
from batches.admin.filters import OwnerFilter, PurposeFilter
from batches.models import File
from batches.models.file import parse_file_id
from relaybatch.admin.large_lists import LargeChangeList, LargeListAdmin

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


class FileChangeList(LargeChangeList):
    def attach_related(self, rows: list[File]) -> None:
        attach_owner_names(rows)


@admin.register(File)
class FileAdmin(LargeListAdmin):
    changelist = FileChangeList
    list_display = ("file", "filename", "owner_name", "purpose", "size", "created_at", "expires_at")
    list_display_links = ("file",)
    list_filter = (PurposeFilter, OwnerFilter)
    list_select_related = ("owner",)
    search_fields = ("id",)
    search_help_text = "A file's id, the beginning of a key, or the exact name of a service account or user"
    ordering = ("-id",)
    fields = ("file", "filename", "owner_name", "purpose", "size", "created_at", "expires_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(deleted_at=None)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> File | None:
        found: File | None = super().get_object(request, object_id, from_field)
        if found is not None:
            attach_owner_names([found])
        return found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return filter_by_id_or_owner(queryset, search_term, parse_id=parse_file_id), False

    @admin.display(description="file")
    def file(self, file: File) -> str:
        return str(file)

    @admin.display(description="owner")
    def owner_name(self, file: File) -> str:
        return str(vars(file)["owner_display_name"])

    @admin.display(description="size")
    def size(self, file: File) -> str:
        return filesizeformat(file.size_bytes)


def attach_owner_names(files: list[File]) -> None:
    """Read the names of all owners at once."""
    names = owner_display_names({file.owner.name for file in files})
    for file in files:
        vars(file)["owner_display_name"] = owner_display_name(file.owner.name, names)
