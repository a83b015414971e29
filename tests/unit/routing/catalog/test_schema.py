"""The table of everything that a catalog file may hold, as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routing.catalog.fields.columns import ChildRows, Reference
from routing.catalog.schema import KINDS

if TYPE_CHECKING:
    from routing.catalog.fields.kinds import Kind

SECTIONS = [kind.section for kind in KINDS]


def referenced_sections(kind: Kind) -> set[str]:
    sections: set[str] = set()
    for field in kind.stored_fields:
        if isinstance(field.column, Reference):
            sections.add(field.column.section)
        elif isinstance(field.column, ChildRows):
            sections.update(field.column.references.values())
    return sections


def test_a_section_comes_after_those_that_its_rows_refer_to() -> None:
    """Rows are written in this order, and pruned in the reverse one."""
    for number, kind in enumerate(KINDS):
        assert referenced_sections(kind) <= set(SECTIONS[:number]), kind.section


def test_each_section_label_and_model_is_there_once() -> None:
    for values in (SECTIONS, [kind.label for kind in KINDS], [kind.model for kind in KINDS]):
        assert len(set(values)) == len(KINDS)


def test_each_column_is_one_of_the_model() -> None:
    for kind in KINDS:
        names = {field.name for field in kind.model._meta.get_fields()}
        accessors = {f.get_accessor_name() for f in kind.model._meta.related_objects}
        for field in kind.stored_fields:
            assert field.column.attribute in names | accessors, f"{kind.section}.{field.name}"


def test_every_row_has_a_name_and_can_be_disabled() -> None:
    for kind in KINDS:
        first, *_, last = kind.all_fields
        assert (first.name, first.required, last.name, last.default) == ("name", True, "enabled", True)
        assert "name" not in {field.name for field in kind.stored_fields}
