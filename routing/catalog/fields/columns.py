"""How values of the file are stored in a row: comparing a value with the row, and writing it.

`assign` sets attributes before the row is saved. `delete_children` and `create_children` replace the rows that belong
to it, in two steps over the whole file: what one row gives up (an alias, say) another may take in the same run.
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
    """A plain attribute. The base class of the others."""

    attribute: str

    def differs(self, row: Any, value: Any) -> bool:
        """Whether the row does not hold the value yet."""
        return bool(self.current(row) != value)

    def current(self, row: Any) -> Any:
        return getattr(row, self.attribute)

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        """Set the value on the unsaved row, and return the names of the attributes that were set."""
        setattr(row, self.attribute, value)
        return (self.attribute,)

    def delete_children(self, row: Any) -> None:
        """Do nothing: a plain attribute has no child rows."""

    def create_children(self, row: Any, value: Any, rows: Rows) -> None:
        """Do nothing: a plain attribute has no child rows."""


@dataclass(frozen=True, slots=True)
class TextList(Column):
    """A list of texts; the order counts."""

    def current(self, row: Any) -> tuple[str, ...]:
        return tuple(getattr(row, self.attribute))

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        setattr(row, self.attribute, list(value))
        return (self.attribute,)


@dataclass(frozen=True, slots=True)
class Reference(Column):
    """A foreign key, whose value is the name of the row that it points to."""

    section: str

    def current(self, row: Any) -> str | None:
        target = getattr(row, self.attribute)
        return None if target is None else name_of(target)

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        setattr(row, self.attribute, None if value is None else rows[self.section][value])
        return (self.attribute,)


@dataclass(frozen=True, slots=True)
class SecretSource(Column):
    """Where a secret is read from: the name of an environment variable, the path of a file, or neither."""

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
    """A secret, encrypted at rest. It is encrypted anew only if it differs or can no longer be decrypted."""

    def differs(self, row: Any, value: Any) -> bool:
        encrypted = getattr(row, self.attribute)
        if value is None or encrypted is None:
            return (value is None) != (encrypted is None)
        try:
            return decrypt(bytes(encrypted)) != str(value).encode()
        except SecretDecryptError:
            return True

    def assign(self, row: Any, value: Any, rows: Rows) -> tuple[str, ...]:
        setattr(row, self.attribute, None if value is None else encrypt(value.encode()))
        return (self.attribute,)


@dataclass(frozen=True, slots=True)
class IncludedUsage(Column):
    """A project's included usage: amount, currency, and whether unpriced use closes it. None: no limit."""

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
    """Rows that belong to this one. They are replaced as a whole when one of their `attributes` differs.

    `attribute` is the reverse accessor and `parent` the foreign key. `references` maps each attribute that is the name
    of a row to that row's section. `ordered` children have a `position`.
    """

    model: type[models.Model]
    parent: str
    attributes: tuple[str, ...]
    references: Mapping[str, str] = field(default_factory=dict)
    ordered: bool = False

    @property
    def prefetch_paths(self) -> tuple[str, ...]:
        """For prefetch_related: the rows that `current` reads of each child."""
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
        order = {"position": position} if self.ordered else {}
        return self.model(**{self.parent: row}, **values, **order)


@dataclass(frozen=True, slots=True)
class ChildRowsWithSecret(ChildRows):
    """Child rows with an optional secret each, encrypted at rest in `encrypted_attribute`.

    `plain_key`: the key of the plain text in a record. The first of `attributes` identifies a child. A secret that can
    no longer be decrypted differs from any. Writing raises SecretError without a master key.
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
        encrypted = getattr(child, self.encrypted_attribute)
        name = getattr(child, self.attributes[0])
        try:
            return name, None if encrypted is None else decrypt(bytes(encrypted)).decode()
        except (SecretError, UnicodeDecodeError):
            # The class stands for a value that equals no text.
            return name, SecretDecryptError

    def _build_child(self, row: Any, record: dict[str, Any], rows: Rows, *, position: int) -> models.Model:
        child = ChildRows._build_child(self, row, record, rows, position=position)
        secret = record[self.plain_key]
        setattr(child, self.encrypted_attribute, None if secret is None else encrypt(secret.encode()))
        return child


def name_of(row: Any) -> str:
    """A user's username, or another row's name."""
    return str(row.get_username() if hasattr(row, "get_username") else row.name)
