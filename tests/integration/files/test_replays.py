"""An upload that comes again, under its Idempotency-Key or resent by an SDK: one file, and the first answer."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from batches.models import File, IdempotencyKey, KeylessCreate
from routing.models import Policy
from tests.support.calls.collections import CHAT
from tests.support.calls.file_calls import (
    LINES,
    error_of,
    file_form,
    file_of,
    form,
    part,
    post,
    stored_folders,
)
from tests.support.rows.catalog import make_caller
from tests.support.run.races import run_concurrently

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from django.test import Client

    from tests.support.servers.web import Reply, Web

PURPOSE, FILE = part("purpose", b"batch"), part("file", LINES, filename="in.jsonl")
ANCHOR, SECONDS = part("expires_after[anchor]", b"created_at"), part("expires_after[seconds]", b"3600")


@pytest.fixture(params=["key", "resend"])
def again(request: pytest.FixtureRequest) -> tuple[dict[str, str], dict[str, str]]:
    """The headers of the first send and of the second."""
    if request.param == "key":
        return {"Idempotency_Key": "k-1"}, {"Idempotency_Key": "k-1"}
    return {"x_stainless_retry_count": "0"}, {"x_stainless_retry_count": "1"}


Again = tuple[dict[str, str], dict[str, str]]


@pytest.fixture
def folders(db: None) -> Iterator[set[str]]:
    """Those that the test adds."""
    before, added = stored_folders(), set[str]()
    yield added
    added |= stored_folders() - before
    assert added == {file.public_id for file in File.objects.all()}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "boundary", "encoding"),
    [
        (form(PURPOSE, FILE), "b0undary", ""),
        (form(PURPOSE, FILE, boundary="other"), "other", ""),
        (form(FILE, part("unknown", b"x"), PURPOSE), "b0undary", ""),
        (form(PURPOSE, part("file", LINES, "Content-Type: text/plain", filename="in.jsonl")), "b0undary", ""),
        (gzip.compress(form(PURPOSE, FILE)), "b0undary", "gzip"),
    ],
    ids=["same", "boundary", "order", "type", "compressed"],
)
def test_the_same_file_in_any_framing_is_one_file_with_one_answer(
    client: Client,
    rows: SimpleNamespace,
    again: Again,
    folders: set[str],
    body: bytes,
    boundary: str,
    encoding: str,
) -> None:
    first = post(client, rows, form(PURPOSE, FILE), **again[0])
    second = post(client, rows, body, boundary=boundary, Content_Encoding=encoding, **again[1])
    assert (second.status_code, second.content) == (200, first.content)
    assert second["Content-Type"] == first["Content-Type"]
    assert File.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "other",
    [
        form(PURPOSE, part("file", LINES + b"\n", filename="in.jsonl")),
        form(PURPOSE, part("file", LINES, filename="other.jsonl")),
        form(PURPOSE, ANCHOR, SECONDS, FILE),
    ],
    ids=["bytes", "name", "expiry"],
)
def test_another_file_is_a_409_under_the_key_and_a_file_of_its_own_without_one(
    client: Client, rows: SimpleNamespace, again: Again, folders: set[str], other: bytes
) -> None:
    first = file_of(post(client, rows, form(PURPOSE, FILE), **again[0]))
    second = post(client, rows, other, **again[1])
    if "Idempotency_Key" in again[1]:
        assert error_of(second) == (409, "idempotency_conflict", None)
    else:
        assert file_of(second) != first


@pytest.mark.django_db
def test_a_first_send_is_never_taken_for_a_resend(client: Client, rows: SimpleNamespace) -> None:
    assert len({file_of(post(client, rows, file_form())).id for _ in range(3)}) == 3


@pytest.mark.django_db
def test_each_later_resend_gets_the_answer_and_none_twice(client: Client, rows: SimpleNamespace) -> None:
    files = [
        file_of(post(client, rows, file_form(), x_stainless_retry_count=str(count))) for count in (0, 1, 2, 2)
    ]
    assert files[0] == files[1] == files[2] != files[3]


@pytest.mark.django_db
def test_a_strangers_key_is_another_one(client: Client, rows: SimpleNamespace) -> None:
    first = file_of(post(client, rows, file_form(), Idempotency_Key="k"))
    rows.headers = {"Authorization": f"Bearer {make_caller(rows).relay_key_value}"}
    assert file_of(post(client, rows, file_form(), Idempotency_Key="k")) != first


@pytest.mark.django_db
def test_a_key_of_a_batch_is_not_one_of_a_file(client: Client, rows: SimpleNamespace) -> None:
    headers = rows.headers | {"Idempotency-Key": "k"}
    assert (
        client.post(CHAT.path, CHAT.body(), content_type="application/json", headers=headers).status_code
        == 200
    )
    refused = post(client, rows, file_form(), Idempotency_Key="k")
    assert error_of(refused) == (409, "idempotency_conflict", None)


@pytest.mark.django_db
def test_a_refusal_is_not_stored_and_the_key_can_be_used_again(
    client: Client, rows: SimpleNamespace, again: Again
) -> None:
    assert error_of(post(client, rows, form(FILE), **again[0]))[0] == 400
    assert file_of(post(client, rows, form(PURPOSE, FILE), **again[1])).size_bytes == len(LINES)
    assert IdempotencyKey.objects.count() + KeylessCreate.objects.filter(status=200).count() == 1


@pytest.mark.django_db
def test_the_first_answer_is_given_whatever_has_changed_since(
    client: Client, rows: SimpleNamespace, again: Again, folders: set[str]
) -> None:
    first = post(client, rows, file_form(), **again[0])
    Policy.objects.update(enabled=False)
    assert post(client, rows, file_form(), **again[1]).content == first.content
    assert error_of(post(client, rows, file_form(b"other"), **again[1]))[0] in (403, 409)


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
def test_a_key_that_is_none_is_refused(client: Client, rows: SimpleNamespace, key: str) -> None:
    refused = post(client, rows, file_form(), Idempotency_Key=key)
    assert error_of(refused) == (400, "invalid_field", "Idempotency-Key")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("headers", [{"Idempotency-Key": "k"}, {"x-stainless-retry-count": "1"}])
def test_of_several_at_once_one_makes_the_file_and_all_get_its_answer(
    store: Web, rows: SimpleNamespace, headers: dict[str, str]
) -> None:
    content = bytes(3_000_000)
    sent = [dict(headers) for _ in range(4)]
    if "x-stainless-retry-count" in headers:  # each is a later resend than the one before
        sent = [{"x-stainless-retry-count": str(count)} for count in range(1, 5)]

    def send(named: dict[str, str]) -> Reply:
        kind = {"Content-Type": "multipart/form-data; boundary=b0undary"}
        return store.call("POST", "/v1/files", headers=rows.headers | kind | named, body=file_form(content))

    replies: list[Any] = run_concurrently([lambda named=named: send(named) for named in sent])  # type: ignore[misc]
    assert {reply.status for reply in replies} == {200}, store.log()
    if "Idempotency-Key" in headers:
        assert len({reply.body for reply in replies}) == File.objects.count() == 1
    else:  # a lower count never gets what a higher one had
        assert len({reply.body for reply in replies}) == File.objects.count() <= 4
