"""Moving every object from the fallback to the main store. Safe to interrupt, and to repeat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from batches.payloads.errors import PayloadError, PayloadWriteError
from batches.payloads.folders import is_deleted, is_old, parse_folders
from batches.payloads.marker import check_fallback_marker, check_marker
from batches.payloads.moving.copy_object import copy_object, is_copied

if TYPE_CHECKING:
    from batches.payloads.folders import PayloadFolder
    from batches.payloads.store import PayloadStore, StoredObject


@dataclass(slots=True)
class MoveReport:
    """`folders`: moved as a whole. `objects`, `size_bytes`: what they held. `problems`: a line for each folder left."""

    folders: int = 0
    objects: int = 0
    size_bytes: int = 0
    problems: list[str] = field(default_factory=list)


class PayloadMove:
    """Memory holds the names of one folder, and a piece of one object.

    Two at a time do no harm: objects are written whole, and what the other one has moved is gone from the fallback.
    """

    def __init__(self, *, main: PayloadStore, fallback: PayloadStore, marker: str) -> None:
        self._main = main
        self._fallback = fallback
        self._marker = marker
        self.report = MoveReport()

    def run(self) -> None:
        """Move what can be moved, and say in `report` what was. Raises PayloadStoreUnavailable if one store is."""
        self._check()
        for folder in parse_folders(self._fallback.folders()):
            try:
                self._move(folder)
            except PayloadError as error:
                self.report.problems.append(f"{folder.name}: {error}")
                # Else each folder of an unavailable store would be waited for.
                self._check()

    def _move(self, folder: PayloadFolder) -> None:
        copied = self._copy_all(folder)
        left = {stored.name for stored in self._fallback.objects(folder.name)}
        if copied and not left and self._was_deleted(folder):
            # Its removal came before the last copy, which nobody else would remove.
            self._main.remove_folder(folder.name)
            return
        self._check_sizes(copied, folder)
        self._fallback.remove_objects(list(copied))
        self._remove_if_empty(folder)
        self.report.folders += 1
        self.report.objects += len(copied)
        self.report.size_bytes += sum(copied.values())

    def _copy_all(self, folder: PayloadFolder) -> dict[str, int]:
        """Copy until the fallback has nothing that was not copied: processes of before the swap may still write there.

        Return `{name: size}`.
        """
        copied: dict[str, int] = {}
        while left := self._not_in(copied, folder):
            there = {stored.name: stored.size_bytes for stored in self._main.objects(folder.name)}
            copied |= {
                stored.name: stored.size_bytes
                for stored in left
                if self._copy(folder, stored, is_there=there.get(stored.name) == stored.size_bytes)
            }
        return copied

    def _not_in(self, copied: dict[str, int], folder: PayloadFolder) -> list[StoredObject]:
        stored_objects = self._fallback.objects(folder.name)
        return [stored for stored in stored_objects if copied.get(stored.name) != stored.size_bytes]

    def _copy(self, folder: PayloadFolder, stored: StoredObject, *, is_there: bool) -> bool:
        """False if the object was removed meanwhile."""
        try:
            if not (is_there and is_copied(self._fallback, self._main, stored)):
                copy_object(self._fallback, self._main, stored)
        except PayloadError:
            if stored.name in {other.name for other in self._fallback.objects(folder.name)}:
                raise
            return False
        return True

    def _check_sizes(self, copied: dict[str, int], folder: PayloadFolder) -> None:
        """Raise PayloadWriteError for an object that is not there as a whole, unless it was removed meanwhile."""
        there = {stored.name: stored.size_bytes for stored in self._main.objects(folder.name)}
        wrong = {name for name, size in copied.items() if there.get(name) != size}
        if wrong and (left := wrong & {stored.name for stored in self._fallback.objects(folder.name)}):
            raise PayloadWriteError(f"{min(left)} is not in the new store as it was written")

    def _was_deleted(self, folder: PayloadFolder) -> bool:
        """Not if the fallback was unmounted, or another run moved the folder."""
        check_fallback_marker(self._fallback, self._marker)
        return is_deleted(folder)

    def _remove_if_empty(self, folder: PayloadFolder) -> None:
        """With what killed writers left in it, unless a writer may still be at work."""
        if is_old(folder) and not list(self._fallback.objects(folder.name)):
            self._fallback.remove_folder(folder.name)

    def _check(self) -> None:
        check_marker(self._main, self._marker)
        check_fallback_marker(self._fallback, self._marker)
