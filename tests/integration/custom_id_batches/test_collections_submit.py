"""What callers send to both creates of `{custom_id, params}`, through the whole surface."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from batches.models import Batch, BatchItem
from routing.models import Policy
from tests.support.calls.collections import CHAT, COLLECTIONS, MESSAGES, stored_requests
from tests.support.rows.catalog import make_catalog
from tests.support.run.races import run_concurrently

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

    from tests.support.calls.collections import Collection

pytestmark = pytest.mark.django_db
BOTH = pytest.mark.parametrize("to", COLLECTIONS, ids=lambda one: one.name)


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def post(client: Client, rows: SimpleNamespace, to: Collection, body: bytes, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(to.path, body, content_type="text/plain", headers=rows.headers | named)


def refused(response: Any, to: Collection, status: int = 400) -> dict[str, Any]:
    assert response.status_code == status
    assert Batch.objects.count() == 0
    return to.error(response)


@BOTH
def test_a_submission_is_a_batch_with_the_callers_ids_and_bytes(
    client: Client, rows: SimpleNamespace, to: Collection
) -> None:
    odd = b'{ "model":"m", "n":[1180591620717411303424,0.1234567890123456789,1.0,1e3], "n":0 }'
    response = post(client, rows, to, to.body(to.item("a"), to.item("b", odd)))
    assert response.status_code == 200
    batch = Batch.objects.get()
    assert json.loads(response.content)["id"].endswith(batch.id.hex)
    assert batch.total_items == 2
    assert (batch.max_attempts, batch.on_rate_limit) == (3, "wait")
    assert batch.expires_at
    assert (batch.expires_at - batch.created_at).total_seconds() == 86_400
    assert stored_requests(batch) == [json.dumps(to.params()).encode(), odd]
    assert list(BatchItem.objects.of(batch).values_list("custom_id", flat=True)) == ["a", "b"]


@BOTH
@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"],
)
def test_any_content_type_is_accepted(
    client: Client, rows: SimpleNamespace, to: Collection, content_type: str
) -> None:
    response = client.generic("POST", to.path, to.body(), content_type=content_type, headers=rows.headers)
    assert response.status_code == 200


@BOTH
@pytest.mark.parametrize("accept", ["application/binary", "text/html", "image/png", ""])
def test_the_accept_header_never_leads_to_a_406(
    client: Client, rows: SimpleNamespace, to: Collection, accept: str
) -> None:
    assert post(client, rows, to, to.body(), Accept=accept).status_code == 200


@BOTH
def test_a_byte_order_mark_a_slash_and_odd_queries_are_accepted(
    client: Client, rows: SimpleNamespace, to: Collection
) -> None:
    body = b"\xef\xbb\xbf" + to.body()
    for query in ("?beta=true", "?x=y&x=z", "/"):
        response = client.post(
            f"{to.path}{query}", body, content_type="application/json", headers=rows.headers
        )
        assert response.status_code == 200


@BOTH
@pytest.mark.parametrize(
    ("params", "message"),
    [
        (b'{"t":"\xff"}', "not valid UTF-8 (byte "),
        (rb'{"t":"\ud800"}', "surrogate"),
        (rb'{"t":"\udc00\ud800"}', "surrogate"),
        (b'{"t":NaN}', "requests[1]"),
        (b'{"t":Infinity}', "requests[1]"),
        (b'{"t":-Infinity}', "requests[1]"),
        (b'{"t":' + b"[" * 20_000 + b"]" * 20_000 + b"}", "too deep"),
        (b'{"t":"\n"}', "requests[1]"),
        (b"{'t':1}", "requests[1]"),
    ],
)
def test_what_is_no_strict_json_inside_of_params_is_a_400_that_says_where(
    client: Client, rows: SimpleNamespace, to: Collection, params: bytes, message: str
) -> None:
    error = refused(post(client, rows, to, to.body(to.item("a"), to.item("b", params))), to)
    assert error["type"] == "invalid_request_error"
    assert error.get("code", "invalid_json") == "invalid_json"
    assert message in error["message"]


@BOTH
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"requests=1",
        b'{"requests":[{"custom_id":"a","params":{}}]}garbage',
        '{"requests":[{"custom_id":"a","params":{}}]}'.encode("utf-16"),
        b'{"requests":[{"custom_id":"\xff","params":{}}]}',
        rb'{"requests":[{"custom_id":"\ud800","params":{}}]}',
    ],
)
def test_what_is_no_strict_json_object_is_a_400(
    client: Client, rows: SimpleNamespace, to: Collection, body: bytes
) -> None:
    error = refused(post(client, rows, to, body), to)
    assert error.get("code", "invalid_json") == "invalid_json"


@BOTH
@pytest.mark.parametrize(
    "params",
    [
        rb'{"t":"\u0000"}',
        '{"t":"\u2028\u2029\u0085"}'.encode(),
        '{"model":"a/b:c d@e 😀"}'.encode(),
        b'{"model":"' + b"m" * 300 + b'","stream":false}',
        b'{"t":' + b"[" * 200 + b"]" * 200 + b"}",
        b"{}",
        b'{"model":""}',
        b'{"model":4}',
        b'{"model":"a","model":"b"}',
        b'{"model":"m","stream":true}',
        b'{"model":"m","stream":"yes"}',
    ],
)
def test_whatever_object_params_is_it_is_stored_byte_for_byte(
    client: Client, rows: SimpleNamespace, to: Collection, params: bytes
) -> None:
    assert post(client, rows, to, to.body(to.item("a", params))).status_code == 200
    assert stored_requests(Batch.objects.get()) == [params]


@BOTH
@pytest.mark.parametrize(
    "items",
    [
        (b"null",),
        (b"7",),
        (b'"text"',),
        (b"[]",),
        (b'{"params":{}}',),
        (b'{"custom_id":null,"params":{}}',),
        (b'{"custom_id":5,"params":{}}',),
        (b'{"custom_id":"","params":{}}',),
        (b'{"custom_id":"' + b"x" * 513 + b'","params":{}}',),
        (rb'{"custom_id":"\u0000","params":{}}',),
        (b'{"custom_id":"first","params":{}}',),
        (b'{"custom_id":"x"}',),
        (b'{"custom_id":"x","params":[]}', b'{"custom_id":"y","params":"z"}'),
    ],
)
def test_every_bad_item_is_named(
    client: Client, rows: SimpleNamespace, to: Collection, items: tuple[bytes, ...]
) -> None:
    error = refused(post(client, rows, to, to.body(to.item("first"), *items)), to)
    for idx in range(1, len(items) + 1):
        assert f"requests[{idx}]" in error["message"]
    assert error.get("param", "requests[1]").startswith("requests[1]")


@pytest.mark.parametrize("custom_id", ["a/b", "a\nb", "é", "x" * 65])
def test_slashes_and_line_breaks_in_a_custom_id_are_chats_alone(
    client: Client, rows: SimpleNamespace, custom_id: str
) -> None:
    assert (
        "requests[0].custom_id"
        in refused(post(client, rows, MESSAGES, MESSAGES.body(MESSAGES.item(custom_id))), MESSAGES)["message"]
    )
    assert post(client, rows, CHAT, CHAT.body(CHAT.item(custom_id))).status_code == 200
    assert BatchItem.objects.get().custom_id == custom_id


@BOTH
def test_an_empty_list_of_requests_is_a_400(client: Client, rows: SimpleNamespace, to: Collection) -> None:
    assert "must not be empty" in refused(post(client, rows, to, b'{"requests":[]}'), to)["message"]


@BOTH
def test_one_item_too_many_is_a_400_with_the_limit(
    client: Client, rows: SimpleNamespace, to: Collection, settings: Settings
) -> None:
    settings.RELAY_CUSTOM_ID_MAX_ITEMS = 2
    items = [to.item(str(number)) for number in range(3)]
    assert "at most 2" in refused(post(client, rows, to, to.body(*items)), to)["message"]
    assert post(client, rows, to, to.body(*items[:2])).status_code == 200


@pytest.mark.parametrize(
    ("to", "status", "kind"),
    [(CHAT, 400, "invalid_request_error"), (MESSAGES, 413, "request_too_large")],
    ids=["chat", "messages"],
)
class TestTooLarge:
    def test_an_item_over_the_limit_is_refused_with_it(
        self,
        client: Client,
        rows: SimpleNamespace,
        settings: Settings,
        to: Collection,
        status: int,
        kind: str,
    ) -> None:
        settings.RELAY_CUSTOM_ID_MAX_ITEM_BYTES = 1024
        large = json.dumps(to.params("x" * 1024)).encode()
        response = post(client, rows, to, to.body(to.item("a"), to.item("b", large)))
        error = refused(response, to, status)
        assert error["type"] == kind
        assert "requests[1].params" in error["message"]
        assert "1024" in error["message"]
        assert response.get("x-should-retry") == ("false" if status == 413 else None)

    def test_a_body_one_byte_over_the_limit_is_refused_with_it(
        self,
        client: Client,
        rows: SimpleNamespace,
        settings: Settings,
        to: Collection,
        status: int,
        kind: str,
    ) -> None:
        body = to.body(to.item("a", json.dumps(to.params("x" * 2000)).encode()))
        settings.RELAY_MAX_REQUEST_BYTES = 1024
        settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES = len(body) - 1
        error = refused(post(client, rows, to, body), to, status)
        assert (error["type"], str(len(body) - 1) in error["message"]) == (kind, True)
        settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES = len(body)
        assert post(client, rows, to, body).status_code == 200

    def test_the_limit_holds_for_what_a_gzipped_body_decodes_to(
        self,
        client: Client,
        rows: SimpleNamespace,
        settings: Settings,
        to: Collection,
        status: int,
        kind: str,
    ) -> None:
        body = to.body(to.item("a", json.dumps(to.params("x" * 5000)).encode()))
        settings.RELAY_MAX_REQUEST_BYTES = 1024
        settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES = 5000
        response = post(client, rows, to, gzip.compress(body), Content_Encoding="gzip")
        assert refused(response, to, status)["type"] == kind
        settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES = len(body)
        assert post(client, rows, to, gzip.compress(body), Content_Encoding="gzip").status_code == 200


def test_a_body_with_shape_keeps_its_own_limit(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    body = b'{"shape":"openai","requests":[{"model":"m"}]}'
    settings.RELAY_MAX_REQUEST_BYTES = len(body) - 1
    error = refused(post(client, rows, CHAT, body), CHAT)
    assert error["code"] == "body_too_large"
    assert str(len(body) - 1) in error["message"]


@pytest.mark.parametrize(
    ("to", "body", "message"),
    [
        (
            CHAT,
            b'{"input_file_id":"file-1","endpoint":"/v1/chat/completions"}',
            "`completion_window` is missing",
        ),
        (
            CHAT,
            b'{"input_file_id":"file-1","requests":[{"custom_id":"a","params":{}}]}',
            "`requests` exclude",
        ),
        (CHAT, b'{"input_file_id":"file-1","shape":"openai"}', "`shape` exclude"),
        (CHAT, b'{"requests":[{"model":"m"}]}', "`shape` is missing"),
        (CHAT, b"{}", "`requests` is missing"),
        (CHAT, b'{"shape":"openai","requests":[{"custom_id":"a","params":{}}]}', "sent without `shape`"),
        (MESSAGES, b'{"shape":"anthropic","requests":[{"model":"m"}]}', "`shape` belongs to /v1/batches"),
        (MESSAGES, b'{"input_file_id":"file-1"}', "`input_file_id` belongs to /v1/batches"),
        (MESSAGES, b'{"requests":[{"model":"m"}]}', "requests[0].custom_id: is missing"),
        (MESSAGES, b"{}", "`requests` is missing"),
    ],
)
def test_mixtures_are_told_which_field_is_missing_or_in_conflict(
    client: Client, rows: SimpleNamespace, to: Collection, body: bytes, message: str
) -> None:
    assert message in refused(post(client, rows, to, body), to)["message"]


def test_a_null_counts_as_absent(client: Client, rows: SimpleNamespace) -> None:
    body = CHAT.body()[:-1] + b',"shape":null,"input_file_id":null}'
    assert post(client, rows, CHAT, body).status_code == 200
    assert post(client, rows, MESSAGES, MESSAGES.body()[:-1] + b',"shape":null}').status_code == 200


@BOTH
def test_the_same_key_and_body_give_the_stored_answer_and_one_batch(
    client: Client, rows: SimpleNamespace, to: Collection
) -> None:
    first = post(client, rows, to, to.body(), Idempotency_Key="k-1")
    again = post(client, rows, to, to.body(), Idempotency_Key="k-1")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert Batch.objects.count() == 1
    other = post(client, rows, to, to.body(to.item("other")), Idempotency_Key="k-1")
    assert (other.status_code, other["x-should-retry"]) == (409, "false")


@BOTH
@pytest.mark.django_db(transaction=True)
def test_the_same_submission_from_four_threads_at_once_is_one_batch_and_one_answer(to: Collection) -> None:
    from django.test import Client

    rows = make_catalog("http://127.0.0.1:9")
    key = str(uuid.uuid4())
    calls = [lambda: post(Client(), rows, to, to.body(), Idempotency_Key=key)] * 4
    answers = {(response.status_code, response.content) for response in run_concurrently(calls)}
    assert [status for status, _ in answers] == [200]
    assert Batch.objects.count() == 1


@BOTH
def test_too_many_open_items_are_a_429(
    client: Client, rows: SimpleNamespace, to: Collection, settings: Settings
) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 1
    error = refused(post(client, rows, to, to.body(to.item("a"), to.item("b"))), to, 429)
    assert error["type"] == "rate_limit_error"


@BOTH
def test_credentials_are_asked_for_in_the_collections_own_words(
    client: Client, rows: SimpleNamespace, to: Collection
) -> None:
    none = client.post(to.path, to.body(), content_type="application/json")
    kinds = {"messages": "authentication_error", "chat": "invalid_request_error"}
    assert refused(none, to, 401)["type"] == kinds[to.name]
    Policy.objects.filter(id=rows.policy.id).update(enabled=False)
    assert refused(post(client, rows, to, to.body()), to, 403)["type"] == "permission_error"


@BOTH
def test_a_host_that_no_link_can_be_made_for_is_told_at_the_create(
    client: Client, rows: SimpleNamespace, to: Collection, settings: Settings
) -> None:
    error = refused(post(client, rows, to, to.body(), Host="elsewhere.test"), to)
    assert "PUBLIC_URL" in error["message"]
    settings.PUBLIC_URL = "https://batches.example"
    assert post(client, rows, to, to.body(), Host="elsewhere.test").status_code == 200


def test_the_versions_of_the_create_are_kept(client: Client, rows: SimpleNamespace) -> None:
    headers = {"anthropic_version": "2023-01-01", "anthropic_beta": "one-1,two-2"}
    assert post(client, rows, MESSAGES, MESSAGES.body(), **headers).status_code == 200
    assert Batch.objects.get().upstream_headers == {
        "anthropic-version": "2023-01-01",
        "anthropic-beta": "one-1,two-2",
    }


def test_an_overlong_version_is_a_400(client: Client, rows: SimpleNamespace) -> None:
    response = post(client, rows, MESSAGES, MESSAGES.body(), anthropic_version="x" * 101)
    assert "anthropic-version" in refused(response, MESSAGES)["message"]
