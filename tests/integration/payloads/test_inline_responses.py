"""Responses that are rows beside their items: read wherever the others are, which stay in the payload store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from batches.models import BatchItem
from batches.payloads import PayloadReadError
from batches.results import results
from batches.results.responses import read_response, read_response_start
from batches.results.result_rows import FIRST_PAGE_ITEMS, PAGE_ITEMS, ResultFilter
from tests.support.calls.relay_calls import get, results_of
from tests.support.rows.admin_rows import owner_client
from tests.support.rows.item_outcomes import complete, complete_inline, end
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

    from batches.models import Batch

pytestmark = pytest.mark.django_db

# Every byte that a text column or a text format would change.
BODY = b'{"n": 1180591620717411303424, "f": 1.0,\n "t": "\\u0000\\ud800\\\\x41", "u": "\xc3\xa9"}'


@pytest.fixture(params=["", "postgres:"])
def payload_url(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = request.param
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "payloads")


def lines_of(client: Client, rows: SimpleNamespace, batch: Batch) -> list[dict[str, Any]]:
    path = f"/v1/messages/batches/msgbatch_{batch.id.hex}/results"
    response = client.get(path, headers=rows.headers)
    assert response.status_code == 200, response.content
    return [json.loads(line) for line in response.getvalue().splitlines()]


@pytest.mark.usefixtures("payload_url")
def test_results_hold_responses_of_the_table_and_of_the_store(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, *[chat_body()] * 4)
    complete_inline(batch, 0, BODY)
    complete(batch, 1, b'{"stored":1}')
    complete(batch, 2, None)
    complete_inline(batch, 3, b"{}")
    body = get(client, rows, f"/{batch.id}/results").getvalue()
    assert body.startswith(b'{"results":[{"idx":0,"state":"completed","response":' + BODY + b"},")
    first, stored, missing, last = results_of(client, rows, batch, "?include=error_code")
    assert (stored["response"], last["response"]) == ({"stored": 1}, {})
    assert missing["error_code"] == "load_result_failed"
    assert (first["error_code"], "response" in missing) == (None, False)


def test_lines_of_messages_hold_them_too(client: Client, rows: SimpleNamespace) -> None:
    custom_ids = ["a", "b"]
    bodies = [chat_body()] * 2
    batch = submit(rows, *bodies, dialect="messages", shape="anthropic", custom_ids=custom_ids)
    complete_inline(batch, 0, BODY)
    complete(batch, 1, b'{"stored":1}')
    end(batch)
    first, second = (line["result"]["message"] for line in lines_of(client, rows, batch))
    assert (first, second) == (json.loads(BODY), {"stored": 1})


def test_they_are_served_while_the_store_is_unavailable(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    batch = submit(rows, chat_body(), chat_body())
    complete_inline(batch, 0, b'{"a":1}')
    complete(batch, 1, b"{}")
    settings.RELAY_BATCH_PAYLOAD_URL = "az://container/prefix"
    inline, stored = results_of(client, rows, batch, "?include=error_code")
    assert (inline["response"], inline["error_code"]) == ({"a": 1}, None)
    assert stored["error_code"] == "load_result_failed"


def test_results_over_several_pages_and_groups_hold_each_response_once(
    client: Client, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "READ_AHEAD_BYTES", 1000)
    total = FIRST_PAGE_ITEMS + PAGE_ITEMS + 1
    batch = submit(rows, *[chat_body()] * total)
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH done AS (UPDATE batches_batchitem SET state = 'completed', claim_no = 1, response_length = 12,"
            " finished_at = now() WHERE batch_id = %s RETURNING id, idx)"
            " INSERT INTO batches_itemresponse SELECT id, convert_to(format('{\"n\":%%s}', idx), 'UTF8') FROM done",
            [batch.id],
        )
    found = [result["response"]["n"] for result in results_of(client, rows, batch)]
    assert found == list(range(total))


def test_no_more_is_read_ahead_than_its_bound_and_a_larger_one_alone(
    rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "READ_AHEAD_BYTES", 100)
    batch = submit(rows, *[chat_body()] * 5)
    for idx, size in enumerate((60, 40, 1, 300, 50)):
        complete_inline(batch, idx, b"x" * size)
    groups = results.iter_results(batch.id, ResultFilter())
    sizes = [[len(result.response or b"") for result in group] for group in groups]
    assert sizes == [[60, 40], [1], [300], [50]]


def test_one_response_is_read_whole_or_from_its_start(rows: SimpleNamespace) -> None:
    batch = submit(rows)
    complete_inline(batch, 0, BODY)
    item = BatchItem.objects.get(batch=batch)
    assert read_response(item) == BODY
    assert read_response_start(item, length=10) == BODY[:10]
    with pytest.raises(PayloadReadError):
        read_response_start(item, length=len(BODY) + 1)


def test_the_payload_page_shows_and_downloads_them(rows: SimpleNamespace) -> None:
    batch = submit(rows)
    complete_inline(batch, 0, b'{"answer":"' + b"x" * 70_000 + b'"}')
    item = BatchItem.objects.get(batch=batch)
    client = owner_client()
    page = client.get(f"/admin/batches/batchitem/{item.id}/payloads/").content.decode()
    assert "The first 64.0\xa0KB of 68.4\xa0KB" in page
    assert client.get(f"/admin/batches/batchitem/{item.id}/payloads/response/").content == read_response(item)
