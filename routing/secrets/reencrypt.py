"""Every secret that is stored: whether each can be read, and moving all of them to the newest master key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.models import HostHeader, HostKey, SigningKey
from routing.secrets.encryption import SecretError, check_master_key, decrypt, reencrypt_with_newest_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db import models

# Each is written again only where nobody else has written it meanwhile; who loses that often has a rival.
_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class SecretColumn:
    """A column of sealed secrets. `label`: the columns that name a row to an operator."""

    model: type[models.Model]
    column: str
    label_columns: tuple[str, ...]

    @property
    def row_kind(self) -> str:
        return str(self.model._meta.verbose_name)

    def filled_rows(self) -> models.QuerySet[models.Model]:
        return self.model._default_manager.exclude(**{self.column: None})


SECRET_COLUMNS = (
    SecretColumn(model=HostKey, column="secret_encrypted", label_columns=("name",)),
    SecretColumn(model=HostHeader, column="secret_encrypted", label_columns=("host__name", "name")),
    SecretColumn(model=SigningKey, column="private_key_encrypted", label_columns=("kid",)),
)


@dataclass(slots=True)
class ReencryptResult:
    """`counts`: rows moved, by the store's word. `unchanged`: under the newest key before. `problems`: one a row."""

    counts: dict[str, int] = field(default_factory=lambda: {store.row_kind: 0 for store in SECRET_COLUMNS})
    unchanged: int = 0
    problems: list[str] = field(default_factory=list)


def find_unreadable_secrets() -> Iterator[tuple[str, str]]:
    """What names the row (`host key openai`), and why its secret cannot be read."""
    for store in SECRET_COLUMNS:
        for sealed, *label in store.filled_rows().values_list(store.column, *store.label_columns):
            try:
                decrypt(sealed)
            except SecretError as error:
                yield f"{store.row_kind} {' '.join(map(str, label))}", str(error)


def reencrypt_all() -> ReencryptResult:
    """Row by row, each in a statement of its own: safe to repeat, to break off, and while everything runs.

    A row that cannot be moved is a problem of the answer and stops no other. Raises SecretError when there is no
    usable key at all.
    """
    check_master_key()
    moved = ReencryptResult()
    for store in SECRET_COLUMNS:
        for pk, *label in store.filled_rows().values_list("pk", *store.label_columns):
            try:
                _reencrypt_row(store, pk, moved)
            except SecretError as error:
                moved.problems.append(f"{store.row_kind} {' '.join(map(str, label))}: {error}")
    return moved


def _reencrypt_row(store: SecretColumn, pk: object, moved: ReencryptResult) -> None:
    for _ in range(_MAX_ATTEMPTS):
        sealed = store.filled_rows().filter(pk=pk).values_list(store.column, flat=True).first()
        if sealed is None:
            return
        resealed = reencrypt_with_newest_key(sealed)
        if resealed is None:
            moved.unchanged += 1
            return
        if store.filled_rows().filter(pk=pk, **{store.column: sealed}).update(**{store.column: resealed}):
            moved.counts[store.row_kind] += 1
            return
    raise SecretError("it is being written by somebody else all the time")
