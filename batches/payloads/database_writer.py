"""Writing one object of the database, in pieces of their own transactions, under a temporary name."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, LiteralString, Self

from django.db import DatabaseError, connection, transaction

from batches.models import PayloadChunk
from batches.payloads.errors import PayloadWriteError
from batches.payloads.store import UNFINISHED_MARK
from relaybatch.db.connection import release_connection
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from relaybatch.db.pipeline import execute_prepared

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

CHUNK_BYTES = 1 << 20
_PUT_CHUNK: LiteralString = """
INSERT INTO batches_payloadchunk (name, part, data) VALUES (%s, %s, %b)
ON CONFLICT (name, part) DO UPDATE SET data = EXCLUDED.data RETURNING part
"""


def put_chunk(name: str, part: int, data: bytes) -> None:
    """Store a piece of an object. Raises Django's database errors.

    Not by the ORM: it writes the bytes into the statement, and psycopg counts uses of the last 100 statements of each
    connection, which would keep them all in memory.
    """
    execute_prepared(_PUT_CHUNK, [name, part, data])


def _lock_name(name: str) -> None:
    """Until the transaction's end. Without it, the later of two writers would not see the rows to replace."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"payload {name}"])


class DatabaseWriter:
    """A PayloadWriter. No transaction is open between two pieces, however slowly they come.

    A process that is killed leaves pieces under the temporary name. They are removed with the object's folder.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._unfinished = f"{name}{UNFINISHED_MARK}{uuid.uuid4().hex}"
        self._buffer = bytearray()
        self._parts = 0
        self._is_committed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_committed and self._parts:
            with contextlib.suppress(DatabaseError, *DATABASE_UNAVAILABLE):
                PayloadChunk.objects.filter(name=self._unfinished).delete()

    def write(self, data: bytes | memoryview) -> None:
        self._buffer += data
        while len(self._buffer) >= CHUNK_BYTES:
            self._store(bytes(self._buffer[:CHUNK_BYTES]))
            del self._buffer[:CHUNK_BYTES]

    def commit(self) -> None:
        if self._buffer or not self._parts:
            self._store(bytes(self._buffer))
        with self._write_errors(), transaction.atomic():
            _lock_name(self._name)
            PayloadChunk.objects.filter(name=self._name).delete()
            renamed = PayloadChunk.objects.filter(name=self._unfinished).update(name=self._name)
            if renamed != self._parts:
                raise PayloadWriteError(f"{self._name} was removed while it was written")
        self._is_committed = True

    def _store(self, piece: bytes) -> None:
        with self._write_errors():
            put_chunk(self._unfinished, self._parts, piece)
        self._parts += 1
        release_connection()

    @contextlib.contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except DATABASE_UNAVAILABLE:
            raise
        except DatabaseError as error:
            raise PayloadWriteError(f"cannot write {self._name}") from error
