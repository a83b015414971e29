"""Every secret that is stored: whether each can be read, and moving all of them to the newest master key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.models import HostHeader, HostKey, SigningKey
from routing.secrets.encryption import SecretError, check_master_key, decrypt, moved_to_newest_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db import models

# Each is written again only where nobody else has written it meanwhile; who loses that often has a rival.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Store:
    """A column of sealed secrets. `label`: the columns that name a row to an operator."""

    model: type[models.Model]
    column: str
    label: tuple[str, ...]

    @property
    def word(self) -> str:
        return str(self.model._meta.verbose_name)

    def filled(self) -> models.QuerySet[models.Model]:
        return self.model._default_manager.exclude(**{self.column: None})


STORES = (
    Store(model=HostKey, column="secret_encrypted", label=("name",)),
    Store(model=HostHeader, column="secret_encrypted", label=("host__name", "name")),
    Store(model=SigningKey, column="private_key_encrypted", label=("kid",)),
)


@dataclass(slots=True)
class Moved:
    """`counts`: rows moved, by the store's word. `unchanged`: under the newest key before. `problems`: one a row."""

    counts: dict[str, int] = field(default_factory=lambda: {store.word: 0 for store in STORES})
    unchanged: int = 0
    problems: list[str] = field(default_factory=list)


def unreadable() -> Iterator[tuple[str, str]]:
    """What names the row (`host key openai`), and why its secret cannot be read."""
    for store in STORES:
        for sealed, *label in store.filled().values_list(store.column, *store.label):
            try:
                decrypt(sealed)
            except SecretError as error:
                yield f"{store.word} {' '.join(map(str, label))}", str(error)


def move_to_newest_master_key() -> Moved:
    """Row by row, each in a statement of its own: safe to repeat, to break off, and while everything runs.

    A row that cannot be moved is a problem of the answer and stops no other. Raises SecretError when there is no
    usable key at all.
    """
    check_master_key()
    moved = Moved()
    for store in STORES:
        for pk, *label in store.filled().values_list("pk", *store.label):
            try:
                _move(store, pk, moved)
            except SecretError as error:
                moved.problems.append(f"{store.word} {' '.join(map(str, label))}: {error}")
    return moved


def _move(store: Store, pk: object, moved: Moved) -> None:
    for _ in range(_TRIES):
        sealed = store.filled().filter(pk=pk).values_list(store.column, flat=True).first()
        if sealed is None:
            return
        resealed = moved_to_newest_key(sealed)
        if resealed is None:
            moved.unchanged += 1
            return
        if store.filled().filter(pk=pk, **{store.column: sealed}).update(**{store.column: resealed}):
            moved.counts[store.word] += 1
            return
    raise SecretError("it is being written by somebody else all the time")
