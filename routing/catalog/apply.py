"""Makes the rows what a catalog file says, in one transaction, and tells what that changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from routing.catalog.changes import Change
from routing.catalog.columns import Children, Reference
from routing.catalog.document import read_document
from routing.catalog.fields import Reading
from routing.catalog.parse import Wanted, read_rows
from routing.catalog.price_gaps import price_gaps
from routing.catalog.problems import CatalogRefused, Problem
from routing.catalog.prune import prune_rows
from routing.catalog.references import all_problems
from routing.catalog.schema import KINDS, Kind, StoredField
from routing.secrets.encryption import SecretError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from routing.catalog.columns import Rows


def _to_nobody(_: str) -> None:
    return None


def apply_catalog(
    path: Path, *, dry_run: bool = False, prune: bool = False, warn: Callable[[str], None] = _to_nobody
) -> list[Change]:
    """What the file changes, in order; empty the second time. Raises CatalogRefused, and then nothing changed.

    A field that the file leaves out has its default. Rows that it leaves out stay, unless `prune`. `dry_run` does
    all of it and takes it back, so that it foretells every refusal of the database too. `warn` is told where calls
    will go unpriced, a sentence each.
    """
    reading = Reading()
    wanted = read_rows(read_document(path), reading)
    with transaction.atomic():
        _one_at_a_time()
        changes = _apply(wanted, reading, prune=prune)
        gaps = price_gaps()
        transaction.set_rollback(dry_run)
    for gap in gaps:
        warn(gap)
    return changes


def _apply(wanted: list[Wanted], reading: Reading, *, prune: bool) -> list[Change]:
    rows = {kind.section: _rows_of(kind) for kind in KINDS}
    problems = all_problems(wanted, reading, rows, with_database=not prune)
    if problems:
        raise CatalogRefused(problems)
    try:
        return _written(wanted, rows, prune=prune)
    except SecretError as error:
        raise CatalogRefused([Problem(0, str(error))]) from error


def _written(wanted: list[Wanted], rows: Rows, *, prune: bool) -> list[Change]:
    """Raises SecretError: a secret cannot be stored without a master key."""
    drafts = [_save(row, rows) for row in wanted]
    pruned = list(prune_rows(wanted, rows)) if prune else []
    for draft in drafts:
        draft.fill(rows)
    return [draft.change for draft in drafts if draft.change] + pruned


@dataclass(frozen=True, slots=True)
class _Draft:
    """A row whose own attributes are saved, and the fields whose children were cleared and wait to be filled."""

    row: Any
    wanted: Wanted
    waiting: tuple[StoredField, ...]
    change: Change | None

    def fill(self, rows: Rows) -> None:
        for field in self.waiting:
            field.column.fill(self.row, self.wanted.values[field.key], rows)


def _save(wanted: Wanted, rows: Rows) -> _Draft:
    named = rows[wanted.kind.section]
    if wanted.name in named:
        return _update(named[wanted.name], wanted, rows)
    row: Any = wanted.kind.model(**{wanted.kind.name_attribute: wanted.name})
    wanted.kind.fresh(row)
    fields = wanted.kind.stored_fields
    for field in fields:
        field.column.assign(row, wanted.values[field.key], rows)
    row.save(force_insert=True)
    named[wanted.name] = row
    change = Change(action="create", kind=wanted.kind.word, name=wanted.name)
    return _Draft(row=row, wanted=wanted, waiting=fields, change=change)


def _update(row: Any, wanted: Wanted, rows: Rows) -> _Draft:
    changed = tuple(
        field for field in wanted.kind.stored_fields if field.column.differs(row, wanted.values[field.key])
    )
    if not changed:
        return _Draft(row=row, wanted=wanted, waiting=(), change=None)
    attributes = set(wanted.kind.touch(row, {field.name for field in changed}))
    for field in changed:
        attributes.update(field.column.assign(row, wanted.values[field.key], rows))
        field.column.clear(row)
    if attributes:
        row.save(update_fields=attributes)
    names = tuple(field.name for field in changed)
    change = Change(action="update", kind=wanted.kind.word, name=wanted.name, fields=names)
    return _Draft(row=row, wanted=wanted, waiting=changed, change=change)


def _rows_of(kind: Kind) -> dict[str, Any]:
    query = kind.model._default_manager.order_by(kind.name_attribute)
    for column in (field.column for field in kind.stored_fields):
        if isinstance(column, Reference):
            query = query.select_related(column.attribute)
        elif isinstance(column, Children):
            query = query.prefetch_related(column.attribute, *column.paths)
    return {getattr(row, kind.name_attribute): row for row in query}


def _one_at_a_time() -> None:
    """A second apply waits here until the first has ended; the lock goes with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('relaybatch catalog'))")
