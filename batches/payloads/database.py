"""Payloads in PostgreSQL (`postgres:`): no shared volume needed, at the price of a larger database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import DatabaseError, transaction
from django.db.models import CharField, Func, IntegerField, Sum, Value
from django.db.models.functions import Substr

from batches.models import PayloadChunk
from batches.payloads.database_writer import CHUNK_BYTES, DatabaseWriter, put_chunk
from batches.payloads.errors import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError
from batches.payloads.store import MARKER_NAME, UNFINISHED_MARK, StoredObject
from relaybatch.db.outage import DATABASE_UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.db.models import QuerySet

# Known without reading the bytes.
_BYTES = Func("data", function="octet_length", output_field=IntegerField())
_FOLDER = Func("name", Value("/"), Value(1), function="split_part", output_field=CharField())


class DatabasePayloads:
    """An outage is no error of a payload: DATABASE_UNAVAILABLE is raised as it is, and the caller retries."""

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        """Safe to repeat when the connection dropped during the commit."""
        try:
            with transaction.atomic():
                for number, chunk in enumerate(_chunks(parts)):
                    put_chunk(name, number, chunk)
                PayloadChunk.objects.filter(name=name, part__gt=number).delete()
        except DATABASE_UNAVAILABLE:
            raise
        except DatabaseError as error:
            raise PayloadWriteError(f"cannot write {name}") from error

    def open_writer(self, name: str) -> DatabaseWriter:
        return DatabaseWriter(name)

    def read(self, name: str) -> bytes:
        try:
            rows = PayloadChunk.objects.filter(name=name).order_by("part").values_list("data", flat=True)
            parts = [bytes(data) for data in rows]
        except DATABASE_UNAVAILABLE:
            raise
        except DatabaseError as error:
            raise PayloadReadError(f"cannot read {name}") from error
        if not parts:
            raise PayloadReadError(f"{name} is missing")
        return b"".join(parts)

    def read_range(self, name: str, *, offset: int, length: int) -> bytes:
        """Read only the parts that the range touches, the first one from where the range begins."""
        first, last = offset // CHUNK_BYTES, max(offset, offset + length - 1) // CHUNK_BYTES
        skip = offset - first * CHUNK_BYTES
        rows = PayloadChunk.objects.filter(name=name, part__range=(first, last)).order_by("part")
        try:
            if first == last:
                piece = rows.values_list(Substr("data", skip + 1, length), flat=True)
                data = b"".join(bytes(part) for part in piece)
            else:
                whole = b"".join(bytes(part) for part in rows.values_list("data", flat=True))
                data = whole[skip : skip + length]
        except DATABASE_UNAVAILABLE:
            raise
        except DatabaseError as error:
            raise PayloadReadError(f"cannot read {name}") from error
        if len(data) != length or (not length and not self._exists(name)):
            raise PayloadReadError(f"{name} is missing or too short")
        return data

    def objects(self, folder: str) -> Iterator[StoredObject]:
        rows = PayloadChunk.objects.filter(name__startswith=f"{folder}/").exclude(
            name__contains=UNFINISHED_MARK
        )
        try:
            for name, size in (
                rows.values_list("name").annotate(bytes=Sum(_BYTES)).order_by("name").iterator()
            ):
                yield StoredObject(name, size)
        except DATABASE_UNAVAILABLE:
            raise
        except DatabaseError as error:
            raise PayloadStoreUnavailable("the payload store cannot be listed") from error

    def remove_objects(self, names: Sequence[str]) -> None:
        _remove(PayloadChunk.objects.filter(name__in=names), "objects")

    def remove_unfinished(self, name: str) -> None:
        _remove(PayloadChunk.objects.filter(name__startswith=f"{name}{UNFINISHED_MARK}"), name)

    def remove_folder(self, folder: str) -> None:
        _remove(PayloadChunk.objects.filter(name__startswith=f"{folder}/"), folder)

    def folders(self) -> Iterator[str]:
        """Including folders without requests: a response may come after its batch was removed."""
        objects = PayloadChunk.objects.filter(part=0).exclude(name=MARKER_NAME)
        try:
            yield from objects.values_list(_FOLDER, flat=True).distinct().iterator()
        except DATABASE_UNAVAILABLE:
            raise
        except DatabaseError as error:
            raise PayloadStoreUnavailable("the payload store cannot be listed") from error

    def read_marker(self) -> str | None:
        row = PayloadChunk.objects.filter(name=MARKER_NAME).first()
        return bytes(row.data).decode("ascii") if row else None

    def write_marker(self, mark: str) -> None:
        self.put(MARKER_NAME, [mark.encode("ascii")])

    def check_free_space(self) -> None:
        """Nothing to check: a full database rejects every write itself."""

    def _exists(self, name: str) -> bool:
        return PayloadChunk.objects.filter(name=name, part=0).exists()


def _remove(chunks: QuerySet[PayloadChunk], what: str) -> None:
    try:
        chunks.delete()
    except DATABASE_UNAVAILABLE:
        raise
    except DatabaseError as error:
        raise PayloadWriteError(f"cannot remove {what}") from error


def _chunks(parts: Sequence[bytes | memoryview]) -> Iterator[bytes]:
    """Split the parts' bytes into pieces of CHUNK_BYTES; yields one empty piece when there are no bytes."""
    buffer = bytearray()
    sent = False
    for part in parts:
        buffer += part
        while len(buffer) >= CHUNK_BYTES:
            yield bytes(buffer[:CHUNK_BYTES])
            del buffer[:CHUNK_BYTES]
            sent = True
    if buffer or not sent:
        yield bytes(buffer)
