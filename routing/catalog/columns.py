"""How a value of the file lies in a row: whether it differs from what is there, and how it is put there.

`assign` sets attributes before the row is saved. `clear` and `fill` replace rows that belong to it, in two steps:
what one row gives up (an alias, say), another may take in the same file.
"""

# ruff: noqa: ARG002 -- all columns share one signature

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from routing.secrets.encryption import SecretDecryptError, SecretError, decrypt, encrypt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db import models

# Rows by section and name: what a name in the file stands for.
Rows = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Column:
    """A plain attribute; the root of the others."""

    attribute: str

    def differs(self, row: Any, value: Any) -> bool:
        return bool(self.current(row) != value)

    def current(self, row: Any) -> Any:
        return getattr(row, self.attribute)

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        """The names of the attributes that were set."""
        setattr(row, self.attribute, value)
        return (self.attribute,)

    def delete_children(self, row: Any) -> None:
        """Nothing belongs to a plain attribute."""

    def create_children(self, row: Any, value: Any, rows: Rows) -> None:
        """Nothing belongs to a plain attribute."""


@dataclass(frozen=True, slots=True)
class TextList(Column):
    """A list of texts, in order."""

    def current(self, row: Any) -> tuple[str, ...]:
        return tuple(getattr(row, self.attribute))

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        setattr(row, self.attribute, list(value))
        return (self.attribute,)


@dataclass(frozen=True, slots=True)
class Reference(Column):
    """A foreign key, by the name of the row that it points to."""

    section: str

    def current(self, row: Any) -> str | None:
        target = getattr(row, self.attribute)
        return None if target is None else name_of(target)

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        setattr(row, self.attribute, None if value is None else rows[self.section][value])
        return (self.attribute,)


@dataclass(frozen=True, slots=True)
class SecretSource(Column):
    """Where a secret is read: the name of a variable, the path of a file, or neither."""

    file_attribute: str

    def current(self, row: Any) -> tuple[str, str]:
        return getattr(row, self.attribute), getattr(row, self.file_attribute)

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        env_name, file_path = value
        setattr(row, self.attribute, env_name)
        setattr(row, self.file_attribute, file_path)
        return self.attribute, self.file_attribute


@dataclass(frozen=True, slots=True)
class EncryptedSecret(Column):
    """Encrypted at rest, and written anew only when the value differs or can no longer be read."""

    def differs(self, row: Any, value: Any) -> bool:
        sealed = getattr(row, self.attribute)
        if value is None or sealed is None:
            return (value is None) != (sealed is None)
        try:
            return decrypt(bytes(sealed)) != str(value).encode()
        except SecretDecryptError:
            return True

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        setattr(row, self.attribute, None if value is None else encrypt(value.encode()))
        return (self.attribute,)


@dataclass(frozen=True, slots=True)
class IncludedUsage(Column):
    """A project's included usage: an amount, its currency and whether unpriced use closes it, or none of these."""

    def current(self, row: Any) -> dict[str, Any] | None:
        if row.included_nanos is None:
            return None
        return {
            "amount": row.included_nanos,
            "currency": row.included_currency,
            "unpriced_closes": row.unpriced_closes,
        }

    def differs(self, row: Any, value: Any) -> bool:
        desired = value and {name: value[name] for name in ("amount", "currency", "unpriced_closes")}
        return bool(self.current(row) != desired)

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        row.included_nanos = value["amount"] if value else None
        row.included_currency = value["currency"] if value else ""
        row.unpriced_closes = bool(value and value["unpriced_closes"])
        return ("included_nanos", "included_currency", "unpriced_closes")


@dataclass(frozen=True, slots=True)
class ChildRows(Column):
    """Rows that belong to this one: replaced as a whole when one of `attributes` differs.

    `attribute` is the reverse accessor; `references` say which attributes are names of rows in which section;
    `ordered` children carry their `position`.
    """

    model: type[models.Model]
    parent: str
    attributes: tuple[str, ...]
    references: Mapping[str, str] = field(default_factory=dict)
    ordered: bool = False

    @property
    def prefetch_paths(self) -> tuple[str, ...]:
        """For prefetch_related: what `current` reads of each child."""
        return tuple(f"{self.attribute}__{attribute}" for attribute in self.references)

    def current(self, row: Any) -> list[tuple[Any, ...]]:
        children = [self._child_values(child) for child in getattr(row, self.attribute).all()]
        return children if self.ordered else sorted(children)

    def differs(self, row: Any, value: Any) -> bool:
        desired = [tuple(record[attribute] for attribute in self.attributes) for record in value]
        return self.current(row) != (desired if self.ordered else sorted(desired))

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        return ()

    def delete_children(self, row: Any) -> None:
        self.model._default_manager.filter(**{self.parent: row}).delete()

    def create_children(self, row: Any, value: Any, rows: Rows) -> None:
        self.model._default_manager.bulk_create(
            self._build_child(row, record, rows, position=position) for position, record in enumerate(value)
        )

    def _child_values(self, child: Any) -> tuple[Any, ...]:
        values = (getattr(child, attribute) for attribute in self.attributes)
        return tuple(
            name_of(value) if value is not None and attribute in self.references else value
            for attribute, value in zip(self.attributes, values, strict=True)
        )

    def _build_child(self, row: Any, record: dict[str, Any], rows: Rows, *, position: int) -> models.Model:
        values = {
            attribute: rows[self.references[attribute]][record[attribute]]
            if attribute in self.references and record[attribute] is not None
            else record[attribute]
            for attribute in self.attributes
        }
        place = {"position": position} if self.ordered else {}
        return self.model(**{self.parent: row}, **values, **place)


@dataclass(frozen=True, slots=True)
class ChildRowsWithSecret(ChildRows):
    """With a secret each, or none, that is encrypted at rest: `sealed` is its attribute, `key` the record's word.

    A secret that can no longer be read differs from any. Writing raises SecretError without a master key.
    """

    encrypted_attribute: str = ""
    plain_key: str = ""

    def differs(self, row: Any, value: Any) -> bool:
        desired = {record[self.attributes[0]]: record[self.plain_key] for record in value}
        return ChildRows.differs(self, row, value) or desired != dict(
            map(self._name_and_secret, self._children(row))
        )

    def _children(self, row: Any) -> list[Any]:
        return list(getattr(row, self.attribute).all())

    def _name_and_secret(self, child: Any) -> tuple[Any, Any]:
        sealed = getattr(child, self.encrypted_attribute)
        name = getattr(child, self.attributes[0])
        try:
            return name, None if sealed is None else decrypt(bytes(sealed)).decode()
        except (SecretError, UnicodeDecodeError):
            return name, SecretDecryptError

    def _build_child(self, row: Any, record: dict[str, Any], rows: Rows, *, position: int) -> models.Model:
        child = ChildRows._build_child(self, row, record, rows, position=position)
        secret = record[self.plain_key]
        setattr(child, self.encrypted_attribute, None if secret is None else encrypt(secret.encode()))
        return child


def name_of(row: Any) -> str:
    return str(row.get_username() if hasattr(row, "get_username") else row.name)
