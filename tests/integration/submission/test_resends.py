"""A create that an SDK sends again because it heard no answer: one batch, and the first one's answer."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.models import F

from batches.completion.delete import delete_batch
from batches.models import Batch, IdempotencyKey, KeylessCreate
from batches.payloads import open_store
from batches.sweeper.cleanup import Cleanup
from routing.credentials.relay_keys import create_key
from routing.models import Policy
from tests.support.calls.collections import CHAT, MESSAGES
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.item_outcomes import discard, end
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db
RELAY_BODY = b'{"shape":"openai","requests":[' + chat_body() + b"]}"
OTHER_BODY = b'{"shape":"openai","requests":[' + chat_body("other") + b"]}"
CREATES = pytest.mark.parametrize(
    ("path", "body"),
    [(CHAT.path, RELAY_BODY), (CHAT.path, CHAT.body()), (MESSAGES.path, MESSAGES.body())],
    ids=["relay", "chat", "messages"],
)


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def create(
    client: Client,
    rows: SimpleNamespace,
    *,
    resend: int | str | None = None,
    path: str = CHAT.path,
    body: bytes = RELAY_BODY,
    **headers: str,
) -> Any:
    """`resend`: what the SDK says in its header; None = it has none."""
    counted = {} if resend is None else {"x-stainless-retry-count": str(resend)}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(path, body, content_type="application/json", headers=rows.headers | counted | named)


def id_of(answer: Any) -> str:
    assert answer.status_code in (200, 202), answer.content
    name: str = json.loads(answer.content)["id"]
    return name


@CREATES
def test_a_create_sent_again_gets_the_stored_answer_and_one_batch(
    client: Client, rows: SimpleNamespace, path: str, body: bytes
) -> None:
    first = create(client, rows, resend=0, path=path, body=body)
    again = create(client, rows, resend=1, path=path, body=body)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Content-Type"] == first["Content-Type"]
    assert Batch.objects.count() == 1
    assert len(list(open_store().folders())) >= 1


@CREATES
def test_a_first_send_is_never_taken_for_a_resend(
    client: Client, rows: SimpleNamespace, path: str, body: bytes
) -> None:
    answers = [create(client, rows, resend=count, path=path, body=body) for count in (0, 0, None, None)]
    assert len({id_of(answer) for answer in answers}) == 4


def test_a_resend_may_be_compressed_differently_and_say_the_path_with_a_slash(
    client: Client, rows: SimpleNamespace
) -> None:
    first = create(client, rows)
    packed = gzip.compress(RELAY_BODY)
    assert create(client, rows, resend=1, body=packed, Content_Encoding="gzip").content == first.content
    assert create(client, rows, resend=2, path="/v1/batches/").content == first.content


def test_a_key_may_be_used_again_on_the_path_with_a_slash(client: Client, rows: SimpleNamespace) -> None:
    first = create(client, rows, Idempotency_Key="k-1")
    assert create(client, rows, path="/v1/batches/", Idempotency_Key="k-1").content == first.content


def test_a_resend_of_two_alike_gets_the_newer_ones_answer(client: Client, rows: SimpleNamespace) -> None:
    ids = [id_of(create(client, rows, resend=0)) for _ in range(2)]
    assert id_of(create(client, rows, resend=1)) == ids[1]


def test_each_later_resend_gets_the_same_answer(client: Client, rows: SimpleNamespace) -> None:
    first = id_of(create(client, rows, resend=0))
    assert [id_of(create(client, rows, resend=count)) for count in (1, 2, 5)] == [first] * 3


@pytest.mark.parametrize("count", [1, 2])
def test_an_answer_that_a_resend_of_the_same_count_or_a_higher_one_had_is_not_given_again(
    client: Client, rows: SimpleNamespace, count: int
) -> None:
    """Two clients whose creates are alike, and were both cut."""
    ids = [id_of(create(client, rows, resend=0)) for _ in range(2)]
    assert id_of(create(client, rows, resend=2)) == ids[1]
    own = id_of(create(client, rows, resend=count))
    assert own not in ids
    assert Batch.objects.count() == 3


def test_a_resend_of_what_never_arrived_creates_and_has_later_resends_itself(
    client: Client, rows: SimpleNamespace
) -> None:
    first = id_of(create(client, rows, resend=1))
    assert id_of(create(client, rows, resend=2)) == first
    assert id_of(create(client, rows, resend=1)) != first


@pytest.mark.parametrize(
    "said", ["", " ", "-1", "+1", "01", "1.5", "1e1", "true", "one", "1,1", "1000", "9" * 400, "²"]
)
def test_a_count_that_no_sdk_says_makes_a_first_send(
    client: Client, rows: SimpleNamespace, said: str
) -> None:
    first = id_of(create(client, rows))
    assert id_of(create(client, rows, resend=said)) != first


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/batches", CHAT.body(CHAT.item("b"))),
        ("/v1/batches?beta=true", CHAT.body()),
        ("/v1/messages/batches", CHAT.body()),
    ],
    ids=["body", "query", "path"],
)
def test_a_resend_of_something_else_creates(
    client: Client, rows: SimpleNamespace, path: str, body: bytes
) -> None:
    create(client, rows, body=CHAT.body())
    assert id_of(create(client, rows, resend=1, path=path, body=body))
    assert Batch.objects.count() == 2


def test_the_same_query_is_the_same_create(client: Client, rows: SimpleNamespace) -> None:
    ids = [
        id_of(create(client, rows, resend=count, path="/v1/messages/batches?beta=true", body=MESSAGES.body()))
        for count in (0, 1)
    ]
    assert ids[0] == ids[1]


def test_another_owner_gets_nothing_of_it(client: Client, rows: SimpleNamespace) -> None:
    """Another key of the same account is another owner."""
    first = id_of(create(client, rows))
    rotated = create_key(principal=rows.service_account).value
    assert id_of(create(client, make_caller(rows), resend=1)) != first
    assert id_of(create(client, rows, resend=1, Authorization=f"Bearer {rotated}")) != first
    assert id_of(create(client, rows, resend=1)) == first


@pytest.mark.parametrize(("minutes", "given"), [(10.9, True), (11.1, False)])
def test_a_create_may_be_sent_again_for_eleven_minutes(
    client: Client, rows: SimpleNamespace, minutes: float, given: bool
) -> None:
    first = id_of(create(client, rows))
    KeylessCreate.objects.update(arrived_at=F("arrived_at") - timedelta(minutes=minutes))
    assert (id_of(create(client, rows, resend=1)) == first) is given


def test_expired_keyless_creates_are_deleted(client: Client, rows: SimpleNamespace) -> None:
    create(client, rows)
    KeylessCreate.objects.update(arrived_at=F("arrived_at") - timedelta(minutes=11.1))
    kept = create(client, rows)
    Cleanup().run()
    assert [bytes(row.answer) for row in KeylessCreate.objects.all()] == [kept.content]


def test_a_resend_of_what_was_refused_is_looked_at_anew(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 0
    assert [create(client, rows, resend=count).status_code for count in (0, 1)] == [429, 429]
    settings.RELAY_MAX_OPEN_ITEMS = 10
    created = id_of(create(client, rows, resend=2))
    assert [str(batch.id) for batch in Batch.objects.all()] == [created]


def test_a_resend_of_a_later_send_that_was_refused_does_not_get_the_earlier_ones_answer(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    first = id_of(create(client, rows, resend=0))
    settings.RELAY_MAX_OPEN_ITEMS = 1
    assert create(client, rows, resend=0).status_code == 429
    settings.RELAY_MAX_OPEN_ITEMS = 10
    assert id_of(create(client, rows, resend=1)) != first


def test_the_store_that_takes_nothing_refuses_too(
    client: Client, rows: SimpleNamespace, settings: Settings, tmp_path: Any
) -> None:
    first = id_of(create(client, rows, resend=0))
    kept = settings.RELAY_BATCH_PAYLOAD_DIR
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "another")
    assert create(client, rows, resend=0).status_code == 503
    settings.RELAY_BATCH_PAYLOAD_DIR = kept
    assert id_of(create(client, rows, resend=1)) != first


def test_a_key_decides_alone(client: Client, rows: SimpleNamespace) -> None:
    keyless = id_of(create(client, rows))
    keyed = id_of(create(client, rows, resend=1, Idempotency_Key="k-1"))
    assert keyed != keyless
    assert id_of(create(client, rows, resend=1, Idempotency_Key="k-1")) == keyed
    assert id_of(create(client, rows, resend=1)) == keyless
    assert (IdempotencyKey.objects.count(), KeylessCreate.objects.count()) == (1, 1)


def test_what_was_created_under_a_key_is_no_create_that_may_be_sent_again_without(
    client: Client, rows: SimpleNamespace
) -> None:
    keyed = id_of(create(client, rows, Idempotency_Key="k-1"))
    assert id_of(create(client, rows, resend=1)) != keyed


def test_the_stored_answer_is_given_also_to_who_may_create_no_more(
    client: Client, rows: SimpleNamespace
) -> None:
    first = create(client, rows)
    Policy.objects.update(enabled=False)
    assert create(client, rows, resend=1).content == first.content
    assert create(client, rows, resend=1, body=OTHER_BODY).status_code == 403
    assert create(client, rows).status_code == 403


def test_the_stored_answer_is_given_also_when_the_batch_is_gone(
    client: Client, rows: SimpleNamespace
) -> None:
    first = create(client, rows)
    batch = Batch.objects.get()
    discard(batch, 0, error_code="timeout", error="x")
    end(batch)
    delete_batch(batch)
    Cleanup().run()
    assert create(client, rows, resend=1).content == first.content
    assert not Batch.objects.exists()


def test_a_retry_that_is_sent_again_gives_the_same_new_batch(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows)
    discard(batch, 0, error_code="timeout", error="x")
    end(batch)
    path = f"/v1/batches/{batch.id}/retry"
    ids = [id_of(create(client, rows, resend=count, path=path, body=b"")) for count in (0, 1, 2, 0)]
    assert ids[0] == ids[1] == ids[2] != ids[3]


def test_a_first_send_writes_one_row_and_looks_for_none(client: Client, rows: SimpleNamespace) -> None:
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        id_of(create(client, rows))
    assert sum("keylesscreate" in query["sql"] for query in captured.captured_queries) == 1
