"""Check that every stored secret can be decrypted, and reencrypt all of them under the newest master key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.models import HostHeader, HostKey, SigningKey
from routing.secrets.encryption import SecretError, check_master_key, decrypt, reencrypt_with_newest_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db import models

# A row is updated only if nobody else has written it meanwhile. Losing that race so often is an error.
_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class SecretColumn:
    """A column of encrypted secrets. `label_columns`: the columns that name a row to an operator."""

    model: type[models.Model]
    name: str
    label_columns: tuple[str, ...]

    @property
    def row_kind(self) -> str:
        return str(self.model._meta.verbose_name)

    def filled_rows(self) -> models.QuerySet[models.Model]:
        return self.model._default_manager.exclude(**{self.name: None})


SECRET_COLUMNS = (
    SecretColumn(model=HostKey, name="secret_encrypted", label_columns=("name",)),
    SecretColumn(model=HostHeader, name="secret_encrypted", label_columns=("host__name", "name")),
    SecretColumn(model=SigningKey, name="private_key_encrypted", label_columns=("kid",)),
)


@dataclass(slots=True)
class ReencryptResult:
    """`counts`: rows reencrypted, by `row_kind`. `unchanged`: rows that were under the newest key.

    `problems`: one for each row that failed.
    """

    counts: dict[str, int] = field(default_factory=lambda: {column.row_kind: 0 for column in SECRET_COLUMNS})
    unchanged: int = 0
    problems: list[str] = field(default_factory=list)


def find_unreadable_secrets() -> Iterator[tuple[str, str]]:
    """Yield the name of each row (`host key openai`) whose secret cannot be decrypted, and the reason."""
    for column in SECRET_COLUMNS:
        for ciphertext, *label in column.filled_rows().values_list(column.name, *column.label_columns):
            try:
                decrypt(ciphertext)
            except SecretError as error:
                yield f"{column.row_kind} {' '.join(map(str, label))}", str(error)


def reencrypt_all() -> ReencryptResult:
    """Reencrypt row by row, each in a statement of its own: safe to repeat, to interrupt, and while everything runs.

    A row that fails is listed in `problems`; the others are still done. Raises SecretError when there is no usable
    master key.
    """
    check_master_key()
    result = ReencryptResult()
    for column in SECRET_COLUMNS:
        for pk, *label in column.filled_rows().values_list("pk", *column.label_columns):
            try:
                _reencrypt_row(column, pk, result)
            except SecretError as error:
                result.problems.append(f"{column.row_kind} {' '.join(map(str, label))}: {error}")
    return result


def _reencrypt_row(column: SecretColumn, pk: object, result: ReencryptResult) -> None:
    row = column.filled_rows().filter(pk=pk)
    for _ in range(_MAX_ATTEMPTS):
        ciphertext = row.values_list(column.name, flat=True).first()
        if ciphertext is None:
            return
        reencrypted = reencrypt_with_newest_key(ciphertext)
        if reencrypted is None:
            result.unchanged += 1
            return
        if row.filter(**{column.name: ciphertext}).update(**{column.name: reencrypted}):
            result.counts[column.row_kind] += 1
            return
    raise SecretError("it is being written by somebody else all the time")
