"""Apply a catalog file: make the rows what it says, in one transaction, and return the changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from routing.catalog.changes import Change
from routing.catalog.document import read_document
from routing.catalog.fields.columns import ChildRows, Reference
from routing.catalog.fields.records import ParseContext
from routing.catalog.parse import DesiredRow, parse_rows
from routing.catalog.price_gaps import find_price_gaps
from routing.catalog.problems import CatalogRejected, Problem
from routing.catalog.prune import prune_rows
from routing.catalog.references import find_problems
from routing.catalog.schema import KINDS
from routing.secrets.encryption import SecretError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from routing.catalog.fields.columns import Rows
    from routing.catalog.fields.kinds import Kind, StoredField


def _ignore(_: str) -> None:
    return None


def apply_catalog(
    path: Path, *, dry_run: bool = False, prune: bool = False, warn: Callable[[str], None] = _ignore
) -> list[Change]:
    """Return the changes in the order in which they were made: none when the file is applied a second time.

    A field that the file leaves out gets its default. Rows that the file leaves out stay, unless `prune`. `dry_run`
    makes all changes and rolls them back, so that it also finds what the database would reject. `warn` is called with
    a sentence for each gap in the prices. Raises CatalogRejected; then nothing was changed.
    """
    context = ParseContext()
    desired_rows = parse_rows(read_document(path), context)
    with transaction.atomic():
        _acquire_apply_lock()
        changes = _apply(desired_rows, context, prune=prune)
        gaps = find_price_gaps()
        transaction.set_rollback(dry_run)
    for gap in gaps:
        warn(gap)
    return changes


def _apply(desired_rows: list[DesiredRow], context: ParseContext, *, prune: bool) -> list[Change]:
    rows = {kind.section: _rows_by_name(kind) for kind in KINDS}
    problems = find_problems(desired_rows, context, rows, with_database=not prune)
    if problems:
        raise CatalogRejected(problems)
    try:
        return _write(desired_rows, rows, prune=prune)
    except SecretError as error:
        raise CatalogRejected([Problem(0, str(error))]) from error


def _write(desired_rows: list[DesiredRow], rows: Rows, *, prune: bool) -> list[Change]:
    """Raises SecretError: a secret cannot be stored without a master key."""
    saved_rows = [_create_or_update(row, rows) for row in desired_rows]
    pruned = list(prune_rows(desired_rows, rows)) if prune else []
    for saved in saved_rows:
        saved.create_children(rows)
    return [saved.change for saved in saved_rows if saved.change] + pruned


@dataclass(frozen=True, slots=True)
class _SavedRow:
    """A row that is saved, with the fields whose children are still to be created."""

    row: Any
    desired: DesiredRow
    pending_fields: tuple[StoredField, ...]
    change: Change | None

    def create_children(self, rows: Rows) -> None:
        for field in self.pending_fields:
            field.column.create_children(self.row, self.desired.values[field.key], rows)


def _create_or_update(desired: DesiredRow, rows: Rows) -> _SavedRow:
    existing = rows[desired.kind.section]
    if desired.name in existing:
        return _update(existing[desired.name], desired, rows)
    row: Any = desired.kind.model(**{desired.kind.name_attribute: desired.name})
    desired.kind.prepare_new(row)
    fields = desired.kind.stored_fields
    for field in fields:
        field.column.assign(row, desired.values[field.key], rows)
    row.save(force_insert=True)
    existing[desired.name] = row
    change = Change(action="create", kind=desired.kind.label, name=desired.name)
    return _SavedRow(row=row, desired=desired, pending_fields=fields, change=change)


def _update(row: Any, desired: DesiredRow, rows: Rows) -> _SavedRow:
    changed = tuple(
        field for field in desired.kind.stored_fields if field.column.differs(row, desired.values[field.key])
    )
    if not changed:
        return _SavedRow(row=row, desired=desired, pending_fields=(), change=None)
    attributes = set(desired.kind.on_change(row, {field.name for field in changed}))
    for field in changed:
        attributes.update(field.column.assign(row, desired.values[field.key], rows))
        field.column.delete_children(row)
    if attributes:
        row.save(update_fields=attributes)
    names = tuple(field.name for field in changed)
    change = Change(action="update", kind=desired.kind.label, name=desired.name, fields=names)
    return _SavedRow(row=row, desired=desired, pending_fields=changed, change=change)


def _rows_by_name(kind: Kind) -> dict[str, Any]:
    query = kind.model._default_manager.order_by(kind.name_attribute)
    for column in (field.column for field in kind.stored_fields):
        if isinstance(column, Reference):
            query = query.select_related(column.attribute)
        elif isinstance(column, ChildRows):
            query = query.prefetch_related(column.attribute, *column.prefetch_paths)
    return {getattr(row, kind.name_attribute): row for row in query}


def _acquire_apply_lock() -> None:
    """Wait until no other apply runs. The lock ends with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('relaybatch catalog'))")
