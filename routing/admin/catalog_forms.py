"""Forms that hold what they store against the rules of the catalog file: the admin takes what `apply` takes.

A form writes its row as the file would, and the file's own readers find the problems.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, cast

import yaml

from relaybatch.admin.typed import AnyInlineFormSet, AnyModelForm
from routing.catalog.fields import ParseContext
from routing.catalog.parse import parse_rows
from routing.catalog.references import find_problems
from routing.catalog.schema import KINDS
from routing.models import Model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.catalog.columns import Rows


def find_row_problems(section: str, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """`(path within the row, words)` for each problem of a row as the file would write it; None is left out."""
    document = yaml.compose(_json({section: [row]}), Loader=yaml.SafeLoader)
    reading = ParseContext()
    wanted = parse_rows(cast("yaml.MappingNode", document), reading)
    problems = find_problems(wanted, reading, _rows(), with_database=True)
    paths = (problem.message.partition(": ") for problem in problems)
    return [(path.removeprefix(f"{section}[0]").removeprefix("."), words) for path, _, words in paths]


class CatalogForm(AnyModelForm):
    """`section`: of the file. `words`: the file's word for a field -> the form's, where they differ."""

    section: ClassVar[str]
    words: ClassVar[Mapping[str, str]] = {}

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The row's own fields as the file would write them; the name is added."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any] | None:
        values = super().clean()
        if values is None or self.errors:
            return values
        row = {"name": values.get("name") or self.instance.name, **self.row(values)}
        for path, words in find_row_problems(self.section, row):
            field = path.partition("[")[0].partition(".")[0]
            field = self.words.get(field, field)
            self.add_error(field if field in self.fields else None, words)
        return values


class CatalogFormSet(AnyInlineFormSet):
    """The rows of one list in a row of `section`: `key` is the list's name in the file."""

    section: ClassVar[str]
    key: ClassVar[str]

    def entry(self, values: Mapping[str, Any]) -> Any:
        """One entry of the list as the file would write it."""
        raise NotImplementedError

    def row(self) -> dict[str, Any]:
        """What else of the row the list is checked with."""
        return {"name": self.instance.name or "new"}

    def entries(self, forms: list[Any]) -> Any:
        """The list as the file would write it, or a mapping in the same order."""
        return [self.entry(form.cleaned_data) for form in forms]

    def kept_forms(self) -> list[Any]:
        return [form for form in self.forms if form.cleaned_data and not form.cleaned_data.get("DELETE")]

    def clean(self) -> None:
        super().clean()
        if any(self.errors):
            return
        kept = self.kept_forms()
        for path, words in find_row_problems(self.section, self.row() | {self.key: self.entries(kept)}):
            # The row's other fields are its form's to check.
            if path.startswith(f"{self.key}["):
                number = int(path.removeprefix(f"{self.key}[").partition("]")[0])
                kept[number].add_error(None, words)


def _json(value: Any) -> str:
    """JSON is YAML, but for a character that JSON may hold unescaped."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def _rows() -> Rows:
    """What a row may refer to, by section and name."""
    rows: Rows = {
        kind.section: {
            name: name for name in kind.model._default_manager.values_list(kind.name_attribute, flat=True)
        }
        for kind in KINDS
        if kind.model is not Model
    }
    rows["models"] = {model.name: model for model in Model.objects.select_related("provider")}
    return rows
