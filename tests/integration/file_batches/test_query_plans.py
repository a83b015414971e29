"""The statements of files and of batches of files read the indexes made for them, whatever else is in the tables."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from batches.models import Batch, File
from batches.submission.owner_quota import get_or_create_owner
from batches.sweeper.sweep import _BACKLOG
from relaybatch.db.clock import database_now
from routing.credentials.credential import authenticate
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.file_batches import create, line
from tests.support.rows.submissions import submit

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.db.models import QuerySet
    from django.test import Client

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = 20_000
# Rows of a batch and a file, many times over.
_COPIES = """
INSERT INTO {table} ({columns}) SELECT {values} FROM {table}, generate_series(1, %s)
WHERE id = (SELECT id FROM {table} LIMIT 1)
"""


@pytest.fixture
def many(client: Client) -> SimpleNamespace:
    """Batches and files of one owner, and a caller who has none."""
    rows = make_catalog("http://127.0.0.1:9")
    create(client, rows, line())
    submit(rows)
    for table in ("batches_batch", "batches_file"):
        _copy_rows(table)
    return make_caller(rows)


def _copy_rows(table: str) -> None:
    with connection.cursor() as cursor:
        columns = [column.name for column in connection.introspection.get_table_description(cursor, table)]
        quoted = ", ".join(columns)
        values = ", ".join("gen_random_uuid()" if name == "id" else name for name in columns)
        cursor.execute(_COPIES.format(table=table, columns=quoted, values=values), [ROWS])
        if table == "batches_batch":
            cursor.execute(
                "UPDATE batches_batch SET in_progress_at = created_at WHERE input_file_id IS NOT NULL"
            )
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM ANALYZE {table}")


def plan(statement: str) -> str:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}")
        return "\n".join(row[0] for row in cursor.fetchall())


def explained(rows: QuerySet[Batch] | QuerySet[File]) -> str:
    return rows.explain()


def test_a_list_reads_its_owners_rows_alone(many: SimpleNamespace) -> None:
    credential = authenticate(many.relay_key_value, now=database_now())
    get_or_create_owner(credential.owner)
    batches = Batch.objects.listed_for(credential).of_dialect("openai", "chat").newest_first()[:21]
    files = File.objects.listed_for(credential).present().page(newest_first=True, after=None)[:21]
    for text in (explained(batches), explained(files)):
        assert "Index Cond: (owner_id" in text, text


def test_the_sweepers_poll_reads_no_table(many: SimpleNamespace) -> None:
    text = plan(_BACKLOG)
    assert "batch_validating" in text, text
    assert "batch_finalizing" in text, text
    assert "Seq Scan on batches_batch " not in text.partition("batch_validating")[2], text


def test_what_is_over_is_found_by_an_index(many: SimpleNamespace) -> None:
    assert "file_expiring" in explained(File.objects.expired()[:200])
    old = File.objects.older_than(timedelta(days=30), now=database_now())[:200]
    assert "Index Cond: (id <" in explained(old), explained(old)
