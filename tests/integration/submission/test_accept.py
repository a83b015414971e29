"""A submission is stored whole or not at all, and its payload is not thrown away while it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import DatabaseError, connection

from batches.models import Batch, BatchItem
from batches.payloads import open_store
from relaybatch.http.errors import TooManyRequests
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

_REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON {table} DEFERRABLE INITIALLY {when}
FOR EACH ROW EXECUTE FUNCTION refuse();
"""


@pytest.fixture
def catalog(settings: Settings, tmp_path: object) -> SimpleNamespace:
    settings.RELAY_BATCH_PAYLOAD_DIR = f"{tmp_path}/payloads"
    return make_catalog("http://127.0.0.1:9")


@pytest.fixture
def refusing(request: pytest.FixtureRequest) -> Iterator[None]:
    with connection.cursor() as cursor:
        when, table = (*request.param.split(), "batches_batch")[:2]
        cursor.execute(_REFUSE.format(when=when, table=table))
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refuse() CASCADE")


@pytest.mark.parametrize("store", ["", "postgres:"])
@pytest.mark.parametrize(
    ("refusing", "folders"),
    [("IMMEDIATE", 0), ("IMMEDIATE batches_batchitem", 0), ("DEFERRED", 1)],
    indirect=["refusing"],
)
def test_the_payload_stays_where_the_commit_may_have_succeeded(
    refusing: None, catalog: SimpleNamespace, settings: Settings, folders: int, store: str
) -> None:
    """An error before the commit throws it away; one of the commit leaves it to the sweeper, which knows."""
    settings.RELAY_BATCH_PAYLOAD_URL = store
    with pytest.raises((DatabaseError, psycopg.Error), match="refused"):
        submit(catalog)
    assert len(list(open_store().folders())) == folders
    assert not Batch.objects.exists()


def test_one_item_too_many_leaves_no_row_and_no_file(catalog: SimpleNamespace, settings: Settings) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 3
    submit(catalog, chat_body(), chat_body())
    with pytest.raises(TooManyRequests):
        submit(catalog, chat_body(), chat_body())
    assert BatchItem.objects.count() == 2
    assert len(list(open_store().folders())) == 1
