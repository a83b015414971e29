"""A kind of row: a section of the catalog file, and the model whose rows it describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.catalog.fields import validators
from routing.catalog.fields.columns import Column
from routing.catalog.fields.parsers import boolean, text
from routing.catalog.fields.records import Check, Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db import models


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field of the file that is stored in the row. `key`: that of its value among the parsed values."""

    name: str
    key: str
    column: Column


@dataclass(frozen=True, slots=True)
class Kind:
    """A section of the file and the model of its rows. `label`: the singular, for messages and `--json`.

    `prepare_new` completes a row before it is created. `on_change` is called with the names of the fields that changed,
    before a row is updated; it returns the attributes that it changed itself.
    """

    section: str
    label: str
    model: type[models.Model]
    fields: tuple[Field, ...] = ()
    check: Check | None = None
    validate_name: Callable[[str], str] = validators.name
    name_attribute: str = "name"
    enabled_attribute: str = "enabled"
    prepare_new: Callable[[Any], None] = lambda _: None
    on_change: Callable[[Any, set[str]], tuple[str, ...]] = lambda _row, _changed: ()

    @property
    def all_fields(self) -> tuple[Field, ...]:
        return (
            Field("name", text(self.validate_name), required=True),
            *self.fields,
            Field("enabled", boolean, default=True, column=Column(self.enabled_attribute)),
        )

    @property
    def stored_fields(self) -> tuple[StoredField, ...]:
        """The fields with a column. The name is not among them: the row is found by it."""
        return tuple(
            StoredField(name=f.name, key=f.key, column=f.column) for f in self.all_fields if f.column
        )
