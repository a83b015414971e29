"""The marker, by which a store shows that it is this deployment's. Its value is in the database, too."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.db import transaction

from batches.models import PayloadStoreMark
from batches.payloads.errors import PayloadStoreUnavailable, PayloadWriteError

if TYPE_CHECKING:
    from batches.payloads.store import PayloadStore


def agreed_marker(store: PayloadStore) -> str:
    """Return the marker's value as the database has it. The first process writes it to the store and the database.

    A store that has one already is adopted by an empty database. Raises PayloadStoreUnavailable.
    """
    marks = PayloadStoreMark.objects.values_list("value", flat=True)
    return marks.first() or _agree_on_marker(store)


def check_marker(store: PayloadStore, expected: str) -> None:
    """Raise PayloadStoreUnavailable unless the store has this marker."""
    found = store.read_marker()
    if found is None:
        raise PayloadStoreUnavailable("the payload store has lost its marker: is the volume mounted?")
    if found != expected:
        raise PayloadStoreUnavailable("the payload store is not the one that the database knows")


def check_fallback_marker(fallback: PayloadStore, expected: str) -> None:
    found = fallback.read_marker()
    if found is None:
        raise PayloadStoreUnavailable(
            "the fallback payload store has no marker: is it mounted, and prepared by move_payloads --prepare?"
        )
    if found != expected:
        raise PayloadStoreUnavailable("the fallback payload store is another database's")


def write_marker(store: PayloadStore, value: str) -> None:
    """Raises PayloadStoreUnavailable."""
    try:
        store.write_marker(value)
    except PayloadWriteError as error:
        raise PayloadStoreUnavailable("the payload store cannot be written") from error


def _agree_on_marker(store: PayloadStore) -> str:
    with transaction.atomic():
        found = store.read_marker()
        value = found or secrets.token_hex(16)
        # A second process waits here for the first one's commit, and then finds its row and its marker.
        mark, created = PayloadStoreMark.objects.get_or_create(
            id=1, defaults={"value": value, "adopted": found is not None}
        )
        if created and store.read_marker() is None:
            write_marker(store, value)
    return mark.value
