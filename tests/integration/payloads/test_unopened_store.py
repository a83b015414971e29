"""A payload store that cannot even be opened: reported to callers and items as any other unavailable store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import Batch, BatchItem
from batches.payloads import PayloadStoreUnavailable, open_store
from batches.sweeper.orphaned_payloads import remove_orphaned_payloads
from relaybatch.ids import uuid7
from tests.support.calls.relay_calls import error_of, results_of
from tests.support.rows.item_outcomes import complete, discard, end
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

# Of an Azure account that no variable names: its form is right.
UNOPENED = "az://container/prefix"


@pytest.mark.parametrize("url", [UNOPENED, "nonsense", "s3:"])
def test_it_is_unavailable(url: str, settings: Settings) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = url
    with pytest.raises(PayloadStoreUnavailable, match="cannot be opened"):
        open_store()


def test_a_folder_that_cannot_be_made_is_unavailable(settings: Settings) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = "file:///proc/nowhere/at/all"
    with pytest.raises(PayloadStoreUnavailable, match="the payload directory cannot be made"):
        open_store()


def test_a_submission_gets_a_503(client: Client, rows: SimpleNamespace, settings: Settings) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = UNOPENED
    body = {"shape": "openai", "requests": [json.loads(chat_body())]}
    response = client.post("/v1/batches", body, content_type="application/json", headers=rows.headers)
    assert (response.status_code, error_of(response)["code"]) == (503, "store_unavailable")
    assert not Batch.objects.exists()


def test_an_item_fails_for_its_payload_and_not_as_a_lost_workers(
    rows: SimpleNamespace, settings: Settings
) -> None:
    batch = submit(rows)
    settings.RELAY_BATCH_PAYLOAD_URL = UNOPENED
    item = BatchItem.objects.get(batch_id=batch.id)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    item.refresh_from_db()
    assert (item.state, item.error_code) == ("discarded", "load_input_failed")


def test_results_say_what_cannot_be_read_back(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    batch = submit(rows, chat_body(), chat_body())
    complete(batch, 0, b"{}")
    settings.RELAY_BATCH_PAYLOAD_URL = UNOPENED
    completed, waiting = results_of(client, rows, batch, "?include=error_code")
    assert (completed["state"], completed["error_code"]) == ("completed", "load_result_failed")
    assert waiting["state"] == "available"


def test_failed_items_cannot_be_sent_again(client: Client, rows: SimpleNamespace, settings: Settings) -> None:
    batch = submit(rows)
    discard(batch, 0, error_code="timeout", error="x")
    end(batch)
    settings.RELAY_BATCH_PAYLOAD_URL = UNOPENED
    response = client.post(
        f"/v1/batches/{batch.id}/retry", b"", content_type="application/json", headers=rows.headers
    )
    assert (response.status_code, error_of(response)["code"]) == (503, "store_unavailable")


def test_nothing_is_looked_for_in_it(settings: Settings) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = UNOPENED
    remove_orphaned_payloads()
