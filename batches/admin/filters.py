"""The filters of the lists of batches, items and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from batches.admin.display_names import find_owner_ids
from batches.dialects import DIALECTS
from batches.models import ITEM_STATES
from batches.models.file import FilePurpose
from relaybatch.admin.filters import ChoiceFilter, TextFilter
from routing.models import Project

if TYPE_CHECKING:
    from django.db.models import QuerySet

MAX_SUGGESTIONS = 200
_STATES: dict[str, dict[str, Any]] = {
    "in_progress": {"ended_at": None, "cancel_initiated_at": None},
    "canceling": {"ended_at": None, "cancel_initiated_at__isnull": False},
    "ended": {"ended_at__isnull": False},
}


class StateFilter(ChoiceFilter):
    title = "state"
    parameter_name = "state"
    options = tuple(_STATES)

    def label(self, option: str) -> str:
        return option.replace("_", " ")

    def filter_rows(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(**_STATES[value])


class DialectFilter(ChoiceFilter):
    title = "dialect"
    parameter_name = "dialect"
    options = tuple(DIALECTS)


class PurposeFilter(ChoiceFilter):
    title = "purpose"
    parameter_name = "purpose"
    options = get_args(FilePurpose)


class OwnerFilter(TextFilter):
    title = "owner"
    parameter_name = "owner"
    hint = "sk-rb-…, account or user"

    def filter_rows(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(owner_id__in=find_owner_ids(value))


class ProjectFilter(TextFilter):
    title = "project"
    parameter_name = "project"
    hint = "exact name"

    def filter_rows(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(project_id__in=Project.objects.filter(name=value).values_list("id", flat=True))

    def suggestions(self) -> list[str]:
        return list(Project.objects.order_by("name").values_list("name", flat=True)[:MAX_SUGGESTIONS])


class ItemStateFilter(ChoiceFilter):
    title = "state"
    parameter_name = "state"
    options = ITEM_STATES
