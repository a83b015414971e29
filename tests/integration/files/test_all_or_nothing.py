"""An upload whose row is refused leaves no content, but where the commit itself may have succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection

from batches.models import File, PayloadChunk
from batches.payloads import open_store
from tests.support.calls.file_calls import LINES, content_of, file_form, post, stored_folders, upload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

_REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON batches_file DEFERRABLE INITIALLY {when}
FOR EACH ROW EXECUTE FUNCTION refuse();
"""


@pytest.fixture
def refusing(request: pytest.FixtureRequest) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(_REFUSE.format(when=request.param))
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refuse() CASCADE")


@pytest.mark.parametrize("store", ["", "postgres:"])
@pytest.mark.parametrize(("refusing", "left"), [("IMMEDIATE", 0), ("DEFERRED", 1)], indirect=["refusing"])
def test_content_stays_where_the_commit_may_have_succeeded(
    refusing: None, client: Client, rows: SimpleNamespace, settings: Settings, store: str, left: int
) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = store
    before = stored_folders()
    client.raise_request_exception = False
    assert post(client, rows, file_form()).status_code == 500
    assert len(stored_folders() - before) == left
    assert not File.objects.exists()


def test_the_database_as_a_store_keeps_every_byte_and_no_piece_of_what_was_refused(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = "postgres:"
    content = bytes(range(256)) * 10_000
    assert content_of(upload(client, rows, content)) == content
    assert content_of(upload(client, rows, b"")) == b""
    pieces = PayloadChunk.objects.count()
    settings.RELAY_MAX_FILE_BYTES = 2_000_000
    assert post(client, rows, file_form(content)).status_code == 413
    assert post(client, rows, file_form(content)[:-9]).status_code == 413
    assert post(client, rows, file_form(content[:1_500_000])[:-9]).status_code == 400
    assert PayloadChunk.objects.count() == pieces


def test_a_store_that_another_database_marked_takes_no_upload(
    client: Client, rows: SimpleNamespace, settings: Settings, tmp_path: object
) -> None:
    upload(client, rows)
    settings.RELAY_BATCH_PAYLOAD_DIR = f"{tmp_path}/other"
    (marker := open_store())._store.write_marker("another")
    assert post(client, rows, file_form(LINES)).status_code == 503
    assert list(marker.folders()) == []
