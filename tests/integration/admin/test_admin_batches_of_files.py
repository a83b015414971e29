"""What an operator sees of batches whose requests come in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batches.completion.cancel import cancel_batch
from batches.file_batches.finalize import finalize_batch
from batches.file_batches.validate import validate_batch
from tests.support.rows import file_batches
from tests.support.rows.admin_rows import owner_client
from tests.support.rows.catalog import make_catalog
from tests.support.rows.item_outcomes import complete, end

if TYPE_CHECKING:
    from django.test import Client

    from batches.models import Batch

pytestmark = pytest.mark.django_db
STATES = ("validating", "failed", "in progress", "finalizing", "completed", "cancelled")


def bring_to(state: str, batch: Batch) -> None:
    if state == "cancelled":
        cancel_batch(batch)
    elif state != "validating":
        validate_batch(batch.id)
    if state in ("finalizing", "completed"):
        complete(batch, 0, b"{}")
        end(batch)
    if state in ("completed", "cancelled"):
        finalize_batch(batch.id)
    batch.refresh_from_db()


@pytest.mark.parametrize("state", STATES)
def test_its_page_says_how_far_it_is_and_which_files_it_has(client: Client, state: str) -> None:
    content = b"{\n" + file_batches.line() if state == "failed" else file_batches.line()
    batch = file_batches.create(client, make_catalog("http://127.0.0.1:9"), content)
    bring_to(state, batch)
    operator = owner_client()
    page = operator.get(f"/admin/batches/batch/{batch.id}/change/").content.decode()
    assert f"{state}</span>" in page
    assert "/v1/chat/completions" in page
    files = [found for found in (batch.input_file_id, batch.output_file_id) if found]
    assert len(files) == (2 if state == "completed" else 1)
    for file_id in files:
        assert f'/admin/batches/file/{file_id}/change/">file-{file_id.hex}</a>' in page
    assert ("line 1: invalid_json_line" in page) == (state == "failed")
    assert f"{state}</span>" in operator.get("/admin/batches/batch/").content.decode()
