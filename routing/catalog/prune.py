"""`apply --prune`: delete the rows that the file does not hold, dependent rows first.

Accounts and users with relay keys or tokens are disabled instead, and so are their project and team when nobody in
them may call any more: deleting an account deletes its keys, and with them the only way to read what they submitted.
Staff are never changed, nor are users with neither project nor policy, since they are no callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import ProtectedError

from routing.catalog.changes import Change
from routing.catalog.fields.columns import name_of
from routing.catalog.problems import CatalogRejected, Problem, format_name
from routing.catalog.schema import KINDS
from routing.models import Project, RelayKey, ServiceAccount, Team, User

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routing.catalog.fields.columns import Rows
    from routing.catalog.fields.kinds import Kind
    from routing.catalog.parse import DesiredRow

MAX_NAMED_HOLDERS = 5


def prune_rows(desired_rows: list[DesiredRow], rows: Rows) -> Iterator[Change]:
    """Yield the changes as they are made. Raises CatalogRejected if a row that stays still uses one to be deleted."""
    in_file = {(row.kind.section, row.name) for row in desired_rows}
    for kind in reversed(KINDS):
        for name, row in rows[kind.section].items():
            if (kind.section, name) not in in_file and not _is_exempt(row):
                yield from _prune(kind, row)


def _prune(kind: Kind, row: Any) -> Iterator[Change]:
    name = name_of(row)
    if _must_be_kept(row):
        if getattr(row, kind.enabled_attribute):
            setattr(row, kind.enabled_attribute, False)
            row.save(update_fields=[kind.enabled_attribute])
            yield Change(action="disable", kind=kind.label, name=name)
        return
    _delete_unused(kind, row)
    yield Change(action="delete", kind=kind.label, name=name)


def _is_exempt(row: Any) -> bool:
    return isinstance(row, User) and (
        row.is_staff or row.is_superuser or (row.project_id is None and row.policy_id is None)
    )


def _must_be_kept(row: Any) -> bool:
    if isinstance(row, ServiceAccount):
        return RelayKey.objects.filter(service_account=row).exists()
    if isinstance(row, User):
        return RelayKey.objects.filter(user=row).exists() or row.tokens.exists()
    if isinstance(row, Project):
        members: list[ServiceAccount | User] = [
            *row.service_accounts.all(),
            *User.objects.filter(project=row),
        ]
        return bool(members) and not any(member.may_call for member in members)
    if isinstance(row, Team):
        projects = row.projects.all()
        return bool(projects) and not any(project.enabled for project in projects)
    return False


def _delete_unused(kind: Kind, row: Any) -> None:
    try:
        row.delete()
    except ProtectedError as error:
        holders = ", ".join(sorted(map(_format_holder, error.protected_objects))[:MAX_NAMED_HOLDERS])
        message = f"{kind.label} {format_name(name_of(row))} is not in the file, and still used by {holders}"
        raise CatalogRejected(
            [Problem(0, f"{message}: change that first, or keep it in the file")]
        ) from error


def _format_holder(row: Any) -> str:
    """A relay key by its id, which the commands take; any other row by its name."""
    name = str(row.pk) if isinstance(row, RelayKey) else format_name(name_of(row))
    return f"{row._meta.verbose_name} {name}"
