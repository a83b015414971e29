"""The rows of a new batch: a small one in one pipeline, a large one by COPY."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, LiteralString, TypeAlias

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

from batches.models import Batch, File
from batches.models.file import INPUT_PURPOSE
from batches.submission.idempotency import Idempotency, store_response_statement
from batches.submission.owner_quota import (
    OPEN_ITEMS_BOUND,
    SHARE_QUOTA,
    check_open_item_quota,
    lock_quota,
    quota_key,
)
from batches.submission.replays import store_replay
from batches.submission.resends import KeylessRequest, record_create_statement
from relaybatch.db.pipeline import execute_pipelined
from relaybatch.http.errors import InvalidRequest
from relaybatch.ids import uuid7_run_hex

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Sequence

    from django.db.models import Field

    from batches.submission.replays import ReplayKey
    from batches.submission.submission import Submission
    from relaybatch.db.pipeline import Statement

NO_SUCH_FILE = (
    "`input_file_id` must be the id of a file of yours with the purpose batch: upload one to /v1/files."
)
MAX_SMALL_ITEMS = 100
LINES_PER_WRITE = 1000
NULL = r"\N"
_COPY_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})

_COPY_ITEMS = """COPY batches_batchitem
(id, batch_id, owner_id, idx, custom_id, request_offset, request_length) FROM STDIN"""
_INSERT_ITEMS: LiteralString = """
INSERT INTO batches_batchitem (id, batch_id, owner_id, idx, custom_id, request_offset, request_length)
SELECT item.id, %(batch)s, %(owner)s, item.number - 1, item.custom_id, item.request_offset, item.request_length
FROM unnest(%(ids)s::uuid[], %(custom_ids)s::text[], %(offsets)s::bigint[], %(lengths)s::int[])
    WITH ORDINALITY AS item (id, custom_id, request_offset, request_length, number)
"""


# Id (as hexadecimal digits), custom_id, and offset and length of the request.
Item: TypeAlias = tuple[str, str | None, int, int]


@dataclass(frozen=True, slots=True)
class NewBatch:
    """`replay_key`: under which the response is stored, None = nowhere."""

    batch: Batch
    submission: Submission
    replay_key: ReplayKey | None
    status: int
    response: bytes = field(repr=False)


def store_small(new: NewBatch) -> bool:
    """Store the rows in the caller's transaction, in one pipeline; False, with a roll-back, if it can't.

    `store_rows` decides then: its owner is near the quota, or its Idempotency-Key was used before.

    Small submissions of one owner don't wait for one another: they share the quota's lock. Those that this one can't
    see yet have MAX_SMALL_ITEMS each at most, and there are no more of them than the server has connections.
    """
    statements: list[Statement] = [
        (SHARE_QUOTA, [quota_key(new.batch.owner_id)]),
        (OPEN_ITEMS_BOUND, [new.batch.owner_id]),
        *_replay_statements(new),
        _insert_batch(new.batch),
        (_INSERT_ITEMS, _item_arrays(new)),
    ]
    _, [(open_items, max_connections)], replay, *_ = execute_pipelined(statements)
    unseen = max_connections * MAX_SMALL_ITEMS
    stored = open_items + unseen <= settings.RELAY_MAX_OPEN_ITEMS and (bool(replay) or not new.replay_key)
    if not stored:
        transaction.set_rollback(True)
    return stored


def store_rows(new: NewBatch) -> None:
    """Store the rows in the caller's transaction. Raises as `accept_batch` does.

    The lock comes late, as it lasts until the commit, and before the replay key, for which `store_small` waits with
    the lock in hand.
    """
    owner_id = new.batch.owner_id
    new.batch.save(force_insert=True)
    requests, custom_ids = new.submission.requests, new.submission.custom_ids
    copy_items(new.batch, custom_ids=custom_ids, lengths=[len(request) for request in requests])
    lock_quota(owner_id)
    check_open_item_quota(owner_id, 0)
    store_replay(new.batch.owner_id, new.replay_key, status=new.status, body=new.response)


def store_file_batch(new: NewBatch) -> None:
    """Store the row of a batch whose requests are still to be read from its file, in the caller's transaction.

    Raises InvalidRequest unless the owner has such a file, else as `accept_batch` does.
    """
    owner_id, file_id = new.batch.owner_id, new.batch.input_file_id
    if file_id is None or not lock_input_file(owner_id, file_id):
        raise InvalidRequest(NO_SUCH_FILE, param="input_file_id")
    new.batch.save(force_insert=True)
    lock_quota(owner_id)
    check_open_item_quota(owner_id, 1)
    store_replay(owner_id, new.replay_key, status=new.status, body=new.response)


def lock_input_file(owner_id: int, file_id: uuid.UUID) -> bool:
    """Hold the file until the caller's transaction ends; False if the owner has no such file for a batch.

    A delete waits, and so does the sweeper: it sees the batch that is created in this transaction, and keeps the
    content while that is validated.
    """
    file = File.objects.present().filter(owner_id=owner_id, id=file_id, purpose=INPUT_PURPOSE)
    return bool(file.select_for_update(no_key=True).values_list("id", flat=True))


def _replay_statements(new: NewBatch) -> list[Statement]:
    owner_id, status, body = new.batch.owner_id, new.status, new.response
    match new.replay_key:
        case Idempotency() as key:
            return [store_response_statement(owner_id, key, status=status, body=body)]
        case KeylessRequest() as request:
            return [record_create_statement(owner_id, request, status=status, body=body)]
    return []


def _insert_batch(batch: Batch) -> Statement:
    statement, fields = _batch_insert()
    database = connections[DEFAULT_DB_ALIAS]  # `connection` looks it up at each access
    return statement, [field.get_db_prep_save(getattr(batch, field.attname), database) for field in fields]


@functools.cache
def _batch_insert() -> tuple[LiteralString, list[Field[Any, Any]]]:
    """The INSERT of a row of Batch, and its fields; the ORM would build it anew for each."""
    fields = [field for field in Batch._meta.concrete_fields if not field.has_db_default()]
    names = ", ".join(str(field.column) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    return f"INSERT INTO batches_batch ({names}) VALUES ({places})", fields


def _item_arrays(new: NewBatch) -> dict[str, Any]:
    lengths = [len(request) for request in new.submission.requests]
    items = _items(new.submission.custom_ids, lengths)
    ids, custom_ids, offsets, lengths_again = zip(*items, strict=True)
    return {
        "batch": new.batch.id,
        "owner": new.batch.owner_id,
        "ids": list(ids),
        "custom_ids": list(custom_ids),
        "offsets": list(offsets),
        "lengths": list(lengths_again),
    }


def copy_items(batch: Batch, *, custom_ids: Sequence[str], lengths: Sequence[int]) -> None:
    """Store the items of a batch, whose requests are one after the other in its payload.

    `custom_ids` is empty for dialects without them. By COPY: 50,000 INSERTs would take ten times as long. Columns that
    are not named get the database's defaults.
    """
    lines = _copy_lines(batch, _items(custom_ids, lengths))
    with connection.cursor() as cursor, cursor.copy(_COPY_ITEMS) as copy:
        while some := "".join(itertools.islice(lines, LINES_PER_WRITE)):
            copy.write(some)


def _copy_lines(batch: Batch, items: Iterable[Item]) -> Iterator[str]:
    """Yield the rows in COPY's text format. psycopg's own `write_row` takes five times as long.

    https://www.postgresql.org/docs/current/sql-copy.html (File Formats)
    """
    batch_id, owner_id = batch.id.hex, batch.owner_id
    for idx, (item_id, custom_id, offset, length) in enumerate(items):
        name = NULL if custom_id is None else custom_id.translate(_COPY_ESCAPES)
        yield f"{item_id}\t{batch_id}\t{owner_id}\t{idx}\t{name}\t{offset}\t{length}\n"


def _items(custom_ids: Sequence[str], lengths: Sequence[int]) -> Iterator[Item]:
    offsets = itertools.accumulate(lengths, initial=0)
    return zip(
        uuid7_run_hex(len(lengths)), custom_ids or itertools.repeat(None), offsets, lengths, strict=False
    )
