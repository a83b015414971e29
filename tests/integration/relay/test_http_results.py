"""Results in Relay's dialect."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import TYPE_CHECKING

import pytest
from django.db.models.functions import Now

from batches.models import BatchItem
from batches.results.result_rows import PAGE_ITEMS
from tests.support.calls.relay_calls import error_of, get, results_of
from tests.support.rows.item_outcomes import complete, discard
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

pytestmark = pytest.mark.django_db


def test_results_are_one_object_at_any_time_with_all_items_in_order(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows, *[chat_body()] * 5)
    complete(batch, 3, b'{"id":"x"}')
    discard(
        batch, 1, error_code="upstream_status", error="batch item: upstream status 400", upstream_status=400
    )
    BatchItem.objects.filter(batch=batch, idx=2).update(state="running", worker_id=uuid.uuid4())
    BatchItem.objects.filter(batch=batch, idx=4).update(
        state="cancelled", error="cancelled while running", finished_at=Now()
    )
    assert results_of(client, rows, batch) == [
        {"idx": 0, "state": "available"},
        {"idx": 1, "state": "discarded", "error": "batch item: upstream status 400"},
        {"idx": 2, "state": "running"},
        {"idx": 3, "state": "completed", "response": {"id": "x"}},
        {"idx": 4, "state": "cancelled", "error": "cancelled while running"},
    ]


def test_a_response_is_given_back_in_the_bytes_it_was_stored_in(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows)
    stored = (
        b'{ "n": 1180591620717411303424, "f": 1.0,\n "t": "\\u0000\\ud800", "d": 0.1234567890123456789012 }'
    )
    complete(batch, 0, stored)
    body = get(client, rows, f"/{batch.id}/results").getvalue()
    assert body == b'{"results":[{"idx":0,"state":"completed","response":' + stored + b"}]}"


def test_an_answer_that_cannot_be_read_back_is_said_and_the_others_are_there(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = submit(rows, chat_body(), chat_body())
    complete(batch, 0, None)
    complete(batch, 1, b"{}")
    lost, found = results_of(client, rows, batch, "?include=error_code")
    assert lost == {
        "idx": 0,
        "state": "completed",
        "error": "load result: the stored answer cannot be read",
        "error_code": "load_result_failed",
    }
    assert found == {"idx": 1, "state": "completed", "response": {}, "error_code": None}


def test_what_is_included_is_added_in_its_own_fields(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows)
    discard(
        batch,
        0,
        error_code="upstream_status",
        error="batch item: upstream status 502",
        upstream_status=502,
        upstream_error=b"<html>\0\xff",
    )
    query = "?include=error_code,upstream_status&include=upstream_error,usage"
    assert results_of(client, rows, batch, query) == [
        {
            "idx": 0,
            "state": "discarded",
            "error": "batch item: upstream status 502",
            "error_code": "upstream_status",
            "upstream_status": 502,
            "upstream_error": "<html>\0\ufffd",
            "usage": None,
        }
    ]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("available", None),
        ("running", None),
        ("completed", None),
        ("expired", None),
        ("cancelled", "x"),
        ("discarded", "x"),
    ],
)
def test_only_items_that_failed_or_were_cut_say_why(
    client: Client, rows: SimpleNamespace, state: str, expected: str | None
) -> None:
    batch = submit(rows)
    complete(batch, 0, b"{}")
    open_since = {"finished_at": None, "worker_id": uuid.uuid4()} if state in ("available", "running") else {}
    BatchItem.objects.filter(batch=batch).update(
        state=state, error_code="x", error="x", upstream_error=b"x", **open_since
    )
    [found] = results_of(client, rows, batch, "?include=error_code,upstream_error")
    assert [found.get(name) for name in ("error", "error_code", "upstream_error")] == [expected] * 3


def test_results_are_filtered_and_paged(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, *[chat_body()] * 6)
    for idx in (1, 3, 5):
        discard(batch, idx, error_code="timeout", error="timed out")
    expected = {
        "?state=discarded": [1, 3, 5],
        "?after_idx=1&limit=2": [2, 3],
        "?after_idx=1&limit=2&state=discarded": [3, 5],
        "?after_idx=5": [],
        "?state=completed": [],
    }
    found = {query: results_of(client, rows, batch, query) for query in expected}
    assert {query: [result["idx"] for result in results] for query, results in found.items()} == expected


def test_results_over_several_pages_hold_each_item_once(client: Client, rows: SimpleNamespace) -> None:
    total = 2 * PAGE_ITEMS + 51
    batch = submit(rows, *[chat_body()] * total)
    assert [result["idx"] for result in results_of(client, rows, batch)] == list(range(total))
    limited = results_of(client, rows, batch, f"?limit={PAGE_ITEMS}")
    assert [result["idx"] for result in limited] == list(range(PAGE_ITEMS))


def test_results_as_lines_are_one_line_an_item_in_ascii(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows, chat_body(), chat_body())
    complete(batch, 0, '{"t":\n"é\u2028😀",\r\n"n":1.0}'.encode())
    response = get(client, rows, f"/{batch.id}/results?format=jsonl")
    assert response["Content-Type"] == "application/x-jsonl"
    assert response.getvalue() == (
        b'{"idx":0,"state":"completed","response":{"t": "\\u00e9\\u2028\\ud83d\\ude00",  "n":1.0}}\n'
        b'{"idx":1,"state":"available"}\n'
    )


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("br", False),
        ("", False),
    ],
)
def test_results_are_gzipped_only_when_that_is_accepted(
    client: Client, rows: SimpleNamespace, accepted: str, *, compressed: bool
) -> None:
    batch = submit(rows)
    response = get(client, rows, f"/{batch.id}/results", Accept_Encoding=accepted)
    body = response.getvalue()
    assert response.get("Content-Encoding") == ("gzip" if compressed else None)
    assert response["Vary"] == "Accept-Encoding"
    plain = gzip.decompress(body) if compressed else body
    assert json.loads(plain) == {"results": [{"idx": 0, "state": "available"}]}


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?items=maybe", "items"),
        ("?state=done", "state"),
        ("?state=", "state"),
        ("/results?state=done", "state"),
        ("/results?include=everything", "include"),
        ("/results?format=xml", "format"),
        ("/results?limit=0", "limit"),
        ("/results?limit=-1", "limit"),
        ("/results?limit=ten", "limit"),
        ("/results?limit=1&limit=2", "limit"),
        ("/results?after_idx=-1", "after_idx"),
        ("/results?after_idx=99999999999999999999", "after_idx"),
    ],
)
def test_a_bad_query_is_a_400_that_names_the_parameter(
    client: Client, rows: SimpleNamespace, query: str, param: str
) -> None:
    response = get(client, rows, f"/{submit(rows).id}{query}")
    assert (response.status_code, error_of(response)["param"]) == (400, param)


def test_unknown_query_parameters_are_ignored(client: Client, rows: SimpleNamespace) -> None:
    assert get(client, rows, f"/{submit(rows).id}?beta=true").status_code == 200
