"""Opening and preparing the two stores of a move."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from batches.payloads.errors import PayloadReadError
from batches.payloads.marker import agreed_marker, check_fallback_marker, check_marker, write_marker
from batches.payloads.opening import open_fallback_store, open_main_store

if TYPE_CHECKING:
    from batches.payloads.store import PayloadStore

PROBE_FOLDER = ".relaybatch-probe"


class NotMovable(Exception):  # noqa: N818 -- a refusal
    """The two stores cannot be those of a move. Nothing was changed."""


def prepare_fallback() -> bool:
    """Mark the fallback as this deployment's; False if it was already. Creates its directory.

    Raises NotMovable, PayloadStoreUnavailable and PayloadWriteError.
    """
    main, fallback = _open_both(make_root=True)
    expected = agreed_marker(main)
    check_marker(main, expected)
    _refuse_same_store(main, fallback)
    found = fallback.read_marker()
    if found == expected:
        return False
    if found is not None:
        raise NotMovable("the fallback payload store is another database's: its marker says so")
    if next(iter(fallback.folders()), None) is not None:
        raise NotMovable("the fallback payload store holds folders and has no marker: whose are they?")
    write_marker(fallback, expected)
    check_fallback_marker(fallback, expected)
    return True


def open_stores_to_move() -> tuple[PayloadStore, PayloadStore, str]:
    """Return the main store, the fallback, and their marker. Raises as `prepare_fallback` does."""
    main, fallback = _open_both()
    expected = agreed_marker(main)
    check_marker(main, expected)
    check_fallback_marker(fallback, expected)
    _refuse_same_store(main, fallback)
    return main, fallback, expected


def _open_both(*, make_root: bool = False) -> tuple[PayloadStore, PayloadStore]:
    fallback = open_fallback_store(make_root=make_root)
    if fallback is None:
        raise NotMovable("RELAY_BATCH_PAYLOAD_FALLBACK_URL is not set")
    return open_main_store(), fallback


def _refuse_same_store(main: PayloadStore, fallback: PayloadStore) -> None:
    """By an object, since one place has many URLs: what is moved from a store to itself would be removed."""
    name = f"{PROBE_FOLDER}/{secrets.token_hex(16)}"
    try:
        main.put(name, [b"."])
        if _has(fallback, name):
            raise NotMovable("RELAY_BATCH_PAYLOAD_FALLBACK_URL is the payload store itself")
    finally:
        main.remove_folder(PROBE_FOLDER)


def _has(store: PayloadStore, name: str) -> bool:
    """Raise PayloadStoreUnavailable where a read may have failed for another reason."""
    try:
        store.read(name)
    except PayloadReadError:
        listed = [stored.name for stored in store.objects(PROBE_FOLDER)]
        return name in listed
    return True
