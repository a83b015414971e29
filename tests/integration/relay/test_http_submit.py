"""What callers send to POST /v1/batches, through the whole surface; nothing is stored of what is refused."""

from __future__ import annotations

import base64
import gzip
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from batches.models import Batch, BatchItem
from batches.payloads import open_store
from routing.models import Policy
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.run.races import run_concurrently

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db
PATH = "/v1/batches"


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def relay_body(*items: bytes) -> bytes:
    return b'{"shape":"openai","requests":[' + b",".join(items or (chat_body(),)) + b"]}"


def post(client: Client, rows: SimpleNamespace, body: bytes, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(PATH, body, content_type="text/plain", headers=rows.headers | named)


def error_of(response: Any) -> dict[str, Any]:
    assert response["Content-Type"] == "application/json"
    assert Batch.objects.count() == 0
    error: dict[str, Any] = json.loads(response.content)["error"]
    return error


def stored_requests(batch: Batch) -> list[bytes]:
    items = BatchItem.objects.of(batch).values_list("request_offset", "request_length")
    return [open_store().read_request(batch.id, offset=offset, length=length) for offset, length in items]


def test_a_submission_is_answered_202_with_exactly_three_fields(
    client: Client, rows: SimpleNamespace
) -> None:
    response = post(client, rows, relay_body(chat_body("a"), chat_body("b")))
    batch = Batch.objects.get()
    assert response.status_code == 202
    assert json.loads(response.content) == {"id": str(batch.id), "status": "queued", "total_items": 2}
    assert batch.id.version == 7
    assert stored_requests(batch) == [chat_body("a"), chat_body("b")]


def test_who_submitted_is_kept_on_the_batch(client: Client, rows: SimpleNamespace) -> None:
    post(client, rows, relay_body())
    batch = Batch.objects.get()
    assert (batch.policy_id, batch.project_id, batch.team_id) == (
        rows.policy.id,
        rows.project.id,
        rows.team.id,
    )
    assert (batch.credential_kind, batch.credential_id) == ("key", str(rows.relay_key.id))


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/json"]
)
def test_any_content_type_is_accepted(client: Client, rows: SimpleNamespace, content_type: str) -> None:
    response = client.post(PATH, relay_body(), content_type=content_type, headers=rows.headers)
    assert response.status_code == 202


def test_a_multipart_content_type_is_accepted(client: Client, rows: SimpleNamespace) -> None:
    response = client.generic(
        "POST", PATH, relay_body(), content_type="multipart/form-data; boundary=x", headers=rows.headers
    )
    assert response.status_code == 202


@pytest.mark.parametrize("accept", ["application/binary", "text/html", "image/png", ""])
def test_the_accept_header_never_leads_to_a_406(client: Client, rows: SimpleNamespace, accept: str) -> None:
    assert post(client, rows, relay_body(), Accept=accept).status_code == 202


def test_a_byte_order_mark_is_accepted(client: Client, rows: SimpleNamespace) -> None:
    assert post(client, rows, b"\xef\xbb\xbf" + relay_body()).status_code == 202


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (relay_body().decode().encode("utf-16"), "UTF-16"),
        (relay_body(b'{"model":"\xff"}'), "not valid UTF-8 (byte 40)"),
        (relay_body(rb'{"model":"m","t":"\ud800"}'), "surrogate"),
        (relay_body() + b"garbage", "trailing characters"),
        (relay_body(chat_body(), b'{"model":"m","t":NaN}'), "requests[1]"),
        (relay_body(b'{"model":"m","t":-Infinity}'), "requests[0]"),
        (relay_body(b'{"model":"m","t":' + b"[" * 20_000 + b"]" * 20_000 + b"}"), "too deep"),
        (b"", "empty"),
        (b"shape=openai", "byte 0"),
    ],
)
def test_what_is_no_strict_json_is_a_400_that_says_where(
    client: Client, rows: SimpleNamespace, body: bytes, message: str
) -> None:
    response = post(client, rows, body)
    error = error_of(response)
    assert response.status_code == 400
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_json")
    assert message in error["message"]


@pytest.mark.parametrize(
    "item",
    [
        rb'{"model":"m","t":"\u0000"}',
        '{"model":"m","t":"\u2028\u2029\u0085"}'.encode(),
        b'{"model":"m","n":[1180591620717411303424,0.123456789012345678901234567890,1.0,1e3,-0]}',
        b'{"model":"m","n":1,"n":2}',
        b'{ "model" : "m" }',
        b'{"model":"m","t":' + b"[" * 200 + b"]" * 200 + b"}",
        '{"model":"a/b:c d@e 😀"}'.encode(),
        b'{"model":"' + b"m" * 300 + b'","stream":false}',
    ],
)
def test_an_odd_item_is_stored_byte_for_byte(client: Client, rows: SimpleNamespace, item: bytes) -> None:
    assert post(client, rows, relay_body(item)).status_code == 202
    assert stored_requests(Batch.objects.get()) == [item]


@pytest.mark.parametrize(
    ("item", "param"),
    [
        (b"null", "requests[1]"),
        (b"7", "requests[1]"),
        (b'"text"', "requests[1]"),
        (b"[]", "requests[1]"),
        (b'{"messages":[]}', "requests[1].model"),
        (b'{"model":""}', "requests[1].model"),
        (b'{"model":4}', "requests[1].model"),
        (b'{"model":"a","model":"b"}', "requests[1].model"),
        (b'{"model":"m","stream":true}', "requests[1].stream"),
        (b'{"model":"m","stream":"yes"}', "requests[1].stream"),
    ],
)
def test_a_bad_item_is_a_400_that_names_it(
    client: Client, rows: SimpleNamespace, item: bytes, param: str
) -> None:
    response = post(client, rows, relay_body(chat_body(), item, chat_body()))
    assert response.status_code == 400
    assert error_of(response)["param"] == param


def test_an_empty_list_of_requests_is_a_400(client: Client, rows: SimpleNamespace) -> None:
    response = post(client, rows, b'{"shape":"openai","requests":[]}')
    assert (response.status_code, error_of(response)["param"]) == (400, "requests")


def test_one_item_too_many_is_a_400_with_the_limit(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_BATCH_MAX_ITEMS = 2
    error = error_of(post(client, rows, relay_body(*[chat_body()] * 3)))
    assert error["code"] == "too_many_items"
    assert post(client, rows, relay_body(*[chat_body()] * 2)).status_code == 202


def test_a_body_one_byte_over_the_limit_is_a_400(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    body = relay_body()
    settings.RELAY_MAX_REQUEST_BYTES = len(body) - 1
    response = post(client, rows, body)
    assert (response.status_code, error_of(response)["code"]) == (400, "body_too_large")
    settings.RELAY_MAX_REQUEST_BYTES = len(body)
    assert post(client, rows, body).status_code == 202


def test_an_item_of_ten_megabytes_is_accepted(client: Client, rows: SimpleNamespace) -> None:
    image = base64.b64encode(bytes(7_500_000))
    item = b'{"model":"m","image":"' + image + b'"}'
    assert post(client, rows, relay_body(item)).status_code == 202
    assert stored_requests(Batch.objects.get()) == [item]


def test_a_gzipped_body_is_accepted_and_the_limit_holds_for_what_it_decodes_to(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    body = relay_body(chat_body("x" * 5000))
    settings.RELAY_MAX_REQUEST_BYTES = 5000
    response = post(client, rows, gzip.compress(body), Content_Encoding="gzip")
    assert (response.status_code, error_of(response)["code"]) == (400, "body_too_large")
    settings.RELAY_MAX_REQUEST_BYTES = len(body)
    assert post(client, rows, gzip.compress(body), Content_Encoding="gzip").status_code == 202


def test_unknown_top_level_fields_are_ignored(client: Client, rows: SimpleNamespace) -> None:
    assert post(client, rows, b'{"x":{"y":[1e999]},' + relay_body()[1:]).status_code == 202


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"input_file_id":"file-1","endpoint":"/v1/chat/completions"}', "missing_field"),
        (b"{}", "missing_field"),
        (b'{"requests":[{"model":"m"}]}', "missing_field"),
        (b'{"shape":"openai","input_file_id":"x","requests":[]}', "conflicting_fields"),
    ],
)
def test_other_dialects_and_mixtures_are_a_clear_400(
    client: Client, rows: SimpleNamespace, body: bytes, code: str
) -> None:
    response = post(client, rows, body)
    assert (response.status_code, error_of(response)["code"]) == (400, code)


def test_too_many_open_items_are_a_429_and_nothing_is_stored(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 1
    response = post(client, rows, relay_body(chat_body(), chat_body()))
    error = error_of(response)
    assert (response.status_code, error["type"], error["code"]) == (
        429,
        "rate_limit_error",
        "too_many_open_items",
    )
    assert "Retry-After" not in response


def test_without_a_credential_a_submission_is_a_401(client: Client) -> None:
    response = client.post(PATH, relay_body(), content_type="application/json")
    error = error_of(response)
    assert (response.status_code, error["type"], error["code"]) == (
        401,
        "invalid_request_error",
        "missing_credential",
    )
    assert response["WWW-Authenticate"] == "Bearer"


def test_a_disabled_policy_creates_nothing_and_still_reads(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows)
    Policy.objects.filter(id=rows.policy.id).update(enabled=False)
    response = post(client, rows, relay_body())
    error = json.loads(response.content)["error"]
    assert (response.status_code, error["type"], error["code"]) == (
        403,
        "permission_error",
        "policy_disabled",
    )
    assert client.get(f"{PATH}/{batch.id}", headers=rows.headers).status_code == 200


def test_the_same_key_and_body_give_the_stored_answer_and_one_batch(
    client: Client, rows: SimpleNamespace
) -> None:
    first = post(client, rows, relay_body(), Idempotency_Key="k-1")
    again = post(client, rows, gzip.compress(relay_body()), Idempotency_Key="k-1", Content_Encoding="gzip")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert Batch.objects.count() == 1


def test_the_stored_answer_is_given_also_to_who_may_create_no_more(
    client: Client, rows: SimpleNamespace
) -> None:
    first = post(client, rows, relay_body(), Idempotency_Key="k-1")
    Policy.objects.update(enabled=False)
    again = post(client, rows, relay_body(), Idempotency_Key="k-1")
    assert (again.status_code, again.content) == (202, first.content)
    assert post(client, rows, relay_body(), Idempotency_Key="k-2").status_code == 403


def test_another_body_under_the_same_key_is_a_409_not_to_be_retried(
    client: Client, rows: SimpleNamespace
) -> None:
    post(client, rows, relay_body(), Idempotency_Key="k-1")
    response = post(client, rows, relay_body(chat_body("other")), Idempotency_Key="k-1")
    assert (response.status_code, response["x-should-retry"]) == (409, "false")
    assert json.loads(response.content)["error"]["code"] == "idempotency_conflict"
    assert Batch.objects.count() == 1


def test_a_refusal_leaves_its_key_free(client: Client, rows: SimpleNamespace) -> None:
    assert post(client, rows, b"{}", Idempotency_Key="k-1").status_code == 400
    assert post(client, rows, relay_body(), Idempotency_Key="k-1").status_code == 202


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 256, "a\tb"])
def test_an_unreadable_idempotency_key_is_a_400(client: Client, rows: SimpleNamespace, key: str) -> None:
    response = post(client, rows, relay_body(), Idempotency_Key=key)
    assert (response.status_code, error_of(response)["param"]) == (400, "Idempotency-Key")


@pytest.mark.django_db(transaction=True)
def test_the_same_submission_from_eight_threads_at_once_is_one_batch_and_one_answer() -> None:
    from django.test import Client

    rows = make_catalog("http://127.0.0.1:9")
    key = str(uuid.uuid4())
    calls = [lambda: post(Client(), rows, relay_body(), Idempotency_Key=key)] * 8
    answers = {(response.status_code, response.content) for response in run_concurrently(calls)}
    assert len(answers) == 1
    assert next(iter(answers))[0] == 202
    assert Batch.objects.count() == 1
