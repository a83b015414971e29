"""Result lines over HTTP: when they can be read, what they hold, and how much of them is in memory."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from batches.publishing.publish import drain_publisher
from batches.results.result_rows import PAGE_ITEMS
from relaybatch.ids import uuid7
from tests.support.calls.collections import COLLECTIONS, MESSAGES
from tests.support.rows.catalog import make_catalog
from tests.support.rows.item_outcomes import complete, discard, end
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

    from batches.models import Batch
    from tests.support.calls.collections import Collection
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db
BOTH = pytest.mark.parametrize("of", COLLECTIONS, ids=lambda one: one.name)
ODD = '{"t":"\u2028\u0085\u2029é😀\\u0000\\ud800","big":1180591620717411303424,"n":1.0,\r\n"m":1e3}'


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def results(client: Client, rows: SimpleNamespace, of: Collection, batch: Batch, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    prefix = {"chat": "batch_", "messages": "msgbatch_"}[of.name]
    where = f"{of.path}/{prefix}{batch.id.hex}/results"
    return client.get(where, headers=rows.headers | named)


@BOTH
def test_before_the_end_there_is_a_409_that_no_sdk_retries(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    response = results(client, rows, of, of.create(client, rows))
    assert (response.status_code, response["x-should-retry"]) == (409, "false")
    assert (
        of.error(response)["type"] == {"messages": "conflict_error", "chat": "invalid_request_error"}[of.name]
    )


@BOTH
def test_lines_are_in_the_order_of_submission_and_equal_as_json(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = of.create(client, rows, *"abcde")
    complete(batch, 0, ODD.encode())
    discard(
        batch,
        1,
        error_code="upstream_status",
        error="batch item: upstream status 404",
        upstream_status=404,
        upstream_error=b'{"type":"error","error":{"type":"not_found_error","message":"model: x"}}',
    )
    complete(batch, 2, None)
    for idx, state in ((3, "cancelled"), (4, "expired")):
        BatchItem.objects.filter(batch=batch, idx=idx).update(state=state, finished_at=batch.created_at)
    end(batch)
    response = results(client, rows, of, batch, Accept="application/binary")
    assert (response.status_code, response["Content-Type"]) == (200, "application/x-jsonl")
    raw = response.getvalue()
    assert raw.isascii()
    lines = raw.splitlines(keepends=True)
    assert all(line.endswith(b"}\n") for line in lines)
    found = [json.loads(line) for line in lines]
    assert [line["custom_id"] for line in found] == list("abcde")
    assert found[0]["result"] == {"type": "succeeded", "message": json.loads(ODD)}
    assert b'"big":1180591620717411303424,"n":1.0,  "m":1e3' in lines[0]
    assert found[1]["result"]["error"]["error"] == {"type": "not_found_error", "message": "model: x"}
    assert found[2]["result"]["error"]["error"]["type"] == "api_error"
    assert [line["result"] for line in found[3:]] == [{"type": "canceled"}, {"type": "expired"}]


@BOTH
def test_the_outer_type_of_an_error_is_the_readers(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = of.create(client, rows)
    discard(batch, 0, error_code="timeout", error="timed out after 300 s")
    end(batch)
    flat = json.loads(results(client, rows, of, batch).getvalue())["result"]["error"]
    nested = json.loads(results(client, rows, of, batch, anthropic_version="2023-06-01").getvalue())
    assert flat["type"] == "timeout_error"
    assert nested["result"]["error"] == flat | {"type": "error"}


@BOTH
def test_results_over_several_pages_hold_each_item_once(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    count = PAGE_ITEMS + 60
    batch = of.create(client, rows, *[f"item-{number}" for number in range(count)])
    BatchItem.objects.filter(batch=batch).update(
        state="discarded", error_code="timeout", error="late", finished_at=batch.created_at
    )
    end(batch)
    lines = results(client, rows, of, batch).getvalue().splitlines()
    assert [json.loads(line)["custom_id"] for line in lines] == [f"item-{number}" for number in range(count)]


@BOTH
def test_results_are_gzipped_when_that_is_accepted(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = of.create(client, rows)
    complete(batch, 0, b"{}")
    end(batch)
    response = results(client, rows, of, batch, Accept_Encoding="gzip, deflate")
    assert response["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(response.getvalue()))["custom_id"] == "a"


def test_no_answer_can_break_another_line(client: Client, rows: SimpleNamespace) -> None:
    """Answers are stored as they came; each stays inside of its own line."""
    batch = MESSAGES.create(client, rows, "a", "b", "c")
    complete(batch, 0, b'{"t":"\\n\\r",\n\n"u":\r\n[\r1]}\n')
    complete(batch, 1, b'  {"t":"\xe2\x80\xa8"}  ')
    complete(batch, 2, b'{"t":"</script>"}')
    end(batch)
    lines = results(client, rows, MESSAGES, batch).getvalue().decode().splitlines()
    messages = [json.loads(line)["result"]["message"] for line in lines]
    assert messages == [{"t": "\n\r", "u": [1]}, {"t": "\u2028"}, {"t": "</script>"}]


@BOTH
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (
            b'[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]',
            *("invalid_request_error", "API key not valid."),
        ),
        (
            b'{"object":"error","message":{"detail":[{"msg":"Field required"}]},"type":"api_error"}',
            *("api_error", "Field required"),
        ),
        (
            b'{"success":false,"errors":[{"code":5007,"message":"No such model"}],"messages":[]}',
            *("invalid_request_error", "No such model"),
        ),
        (b'"model not loaded"', "invalid_request_error", "model not loaded"),
        (b"<html>No</html>", "invalid_request_error", "<html>No</html>"),
        (
            b'{"error":{"type":"billing_error","message":"no credit","of":"' + b"x" * 5000 + b'"}}',
            *("billing_error", "no credit"),
        ),
        (b'[{"error":{"message":"' + "é".encode() * 4096, "invalid_request_error", "é" * 2000),
    ],
    ids=["gemini", "mistral", "cloudflare", "string", "page", "cut", "cut in its words"],
)
def test_the_words_of_an_upstream_reach_the_caller(
    client: Client, upstream: Upstream, of: Collection, said: bytes, kind: str, message: str
) -> None:
    rows = make_catalog(upstream.url)
    batch = of.create(client, rows)
    drain_publisher()
    upstream.script(answers.body(said, status=422))
    execute_item(BatchItem.objects.get(batch=batch).id, in_flight=InFlightItems(uuid7(), slots=8))
    line = json.loads(results(client, rows, of, batch, anthropic_version="2023-06-01").getvalue())
    assert line["result"]["error"]["error"] == {"type": kind, "message": message}
