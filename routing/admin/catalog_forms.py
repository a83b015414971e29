"""Forms that validate by the rules of the catalog file: the admin accepts what `apply` accepts.

A form writes its row as the catalog file would, and the file's own parsers find the problems.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, cast

import yaml

from relaybatch.admin.typed_admin import AnyInlineFormSet, AnyModelForm
from routing.catalog.fields.records import ParseContext
from routing.catalog.parse import parse_rows
from routing.catalog.references import find_problems
from routing.catalog.schema import KINDS
from routing.models import Model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.catalog.fields.columns import Rows


def find_row_problems(section: str, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """`(path within the row, message)` for each problem. `row` is as the file has it; None is absent."""
    document = yaml.compose(_to_yaml({section: [row]}), Loader=yaml.SafeLoader)
    context = ParseContext()
    desired_rows = parse_rows(cast("yaml.MappingNode", document), context)
    problems = find_problems(desired_rows, context, _existing_rows(), with_database=True)
    parts = (problem.message.partition(": ") for problem in problems)
    return [(path.removeprefix(f"{section}[0]").removeprefix("."), message) for path, _, message in parts]


class CatalogForm(AnyModelForm):
    """The form of a row of the catalog file's `section`.

    `form_field_names`: the file's name of a field -> the form's, where they differ.
    """

    section: ClassVar[str]
    form_field_names: ClassVar[Mapping[str, str]] = {}

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The row's own fields as the file would have them, without the name, which is added."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any] | None:
        values = super().clean()
        if values is None or self.errors:
            return values
        row = {"name": values.get("name") or self.instance.name, **self.to_catalog(values)}
        for path, message in find_row_problems(self.section, row):
            field = path.partition("[")[0].partition(".")[0]
            field = self.form_field_names.get(field, field)
            self.add_error(field if field in self.fields else None, message)
        return values


class CatalogFormSet(AnyInlineFormSet):
    """The forms of one list in a row of `section`. `list_field`: the list's name in the file."""

    section: ClassVar[str]
    list_field: ClassVar[str]

    def entry_to_catalog(self, values: Mapping[str, Any]) -> Any:
        """One entry of the list as the file would have it."""
        raise NotImplementedError

    def row_to_catalog(self) -> dict[str, Any]:
        """The other fields of the row that the list is validated with."""
        return {"name": self.instance.name or "new"}

    def list_to_catalog(self, forms: list[Any]) -> Any:
        """The list as the file would have it, or a mapping in the same order."""
        return [self.entry_to_catalog(form.cleaned_data) for form in forms]

    def remaining_forms(self) -> list[Any]:
        """The filled forms that are not marked for deletion."""
        return [form for form in self.forms if form.cleaned_data and not form.cleaned_data.get("DELETE")]

    def clean(self) -> None:
        super().clean()
        if any(self.errors):
            return
        remaining = self.remaining_forms()
        row = self.row_to_catalog() | {self.list_field: self.list_to_catalog(remaining)}
        for path, message in find_row_problems(self.section, row):
            # Problems of the row's other fields are reported by its own form.
            if path.startswith(f"{self.list_field}["):
                number = int(path.removeprefix(f"{self.list_field}[").partition("]")[0])
                remaining[number].add_error(None, message)


def _to_yaml(value: Any) -> str:
    """As JSON, which is YAML but for DEL: JSON may hold that character unescaped."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def _existing_rows() -> Rows:
    """What a row may refer to, by section and name. Only models are loaded: a grant needs a model's provider."""
    rows: Rows = {
        kind.section: {
            name: name for name in kind.model._default_manager.values_list(kind.name_attribute, flat=True)
        }
        for kind in KINDS
        if kind.model is not Model
    }
    rows["models"] = {model.name: model for model in Model.objects.select_related("provider")}
    return rows
