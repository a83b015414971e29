"""Validation: what a file may look like, and what each wrong line is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as configured
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from batches.completion.batch_end import end_complete_batch
from batches.completion.cancel import cancel_batch
from batches.completion.expire import expire_batch
from batches.file_batches import line_reader, validate
from batches.file_batches.finalize import finalize_batch
from batches.file_batches.validate import validate_batch
from batches.models import Batch, BatchItem, File
from batches.payloads import PayloadWriteError, open_store
from batches.sweeper.sweep import end_complete_batches
from tests.support.calls.collections import stored_requests
from tests.support.rows.catalog import make_catalog
from tests.support.rows.file_batches import ENDPOINT, body, create, line, post, status, validated

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def errors(client: Client, rows: SimpleNamespace, content: bytes, **fields: Any) -> list[Any]:
    batch = create(client, rows, content, **fields)
    validate_batch(batch.id)
    found = status(client, rows, batch)
    assert found["status"] == "failed"
    assert found["failed_at"]
    assert found["errors"]["object"] == "list"
    assert BatchItem.objects.filter(batch=batch).count() == 0
    return [(error["code"], error["line"], error["param"]) for error in found["errors"]["data"]]


def test_a_good_file_becomes_items_whose_requests_are_its_bytes(
    client: Client, rows: SimpleNamespace
) -> None:
    odd = '{"model":"echo-1", "n":1.0,"big":1180591620717411303424,"t":"\u2028\u0085\\u0000é","n":1e3}'
    content = (
        b"\xef\xbb\xbf"
        + line("first")
        + b"\r\n\n \t \r\n"
        + (f'  {{"custom_id":"sec\u2028ond","method":"POST","url":"{ENDPOINT}","body":{odd}}} ').encode()
        + b"\n"
        + line("third", unknown={"a": 1}, body=body(stream=False))
    )
    batch = create(client, rows, content)
    validate_batch(batch.id)
    batch.refresh_from_db()
    found = status(client, rows, batch)
    assert (found["status"], found["request_counts"]["total"]) == ("in_progress", 3)
    assert found["in_progress_at"] >= found["created_at"]
    assert [item.custom_id for item in BatchItem.objects.of(batch)] == ["first", "sec\u2028ond", "third"]
    first, second, third = stored_requests(batch)
    assert (json.loads(first), second) == (body(), odd.encode())
    assert json.loads(third) == body(stream=False)


NOT_TEXT: list[Any] = [None, 1, [], "", {}]
NO_CUSTOM_ID: list[Any] = [None, 1, "", "x" * 513, "a\0b", True, {}]
NO_OBJECT: list[Any] = [None, 1, [], "text"]
BAD_LINES = {
    "invalid_json_line": [
        b"{",
        b"[]",
        b"1",
        b"null",
        b'"text"',
        line() + b" {}",
        line().replace(b"hello", b"\xff"),
        line().replace(b"hello", b"\\ud800"),
        line().replace(b'"hello"', b"NaN"),
        line().replace(b'"hello"', b"[" * 20_000 + b"]" * 20_000),
    ],
    "missing_required_parameter": [
        *(line(**{name: value}) for name in ("method", "url") for value in NOT_TEXT),
        *(line(custom_id) for custom_id in NO_CUSTOM_ID),
        *(line(body=value) for value in NO_OBJECT),
    ],
    "invalid_method": [line(method="GET"), line(method="post")],
    "invalid_url": [line(url="/v1/completions"), line(url=f"https://api.openai.com{ENDPOINT}")],
}


@pytest.mark.parametrize("code", BAD_LINES)
def test_each_bad_line_is_named_by_its_number(client: Client, rows: SimpleNamespace, code: str) -> None:
    bad = BAD_LINES[code]
    content = b"\n".join([line("good"), b"", *bad, line("also good")])
    found = errors(client, rows, content)
    assert [(kind, number) for kind, number, _ in found] == [
        (code, number) for number in range(3, 3 + len(bad))
    ]


def test_the_parameter_is_named(client: Client, rows: SimpleNamespace) -> None:
    found = errors(client, rows, b"\n".join([line(None), line("b", body=None), line("c", url="/x")]))
    assert [param for _, _, param in found] == ["custom_id", "body", "url"]


def test_a_file_with_every_kind_of_bad_line_has_each_in_its_order(
    client: Client, rows: SimpleNamespace
) -> None:
    lines = [line("same"), b"{", line(None), line("b", method="PUT"), line("c", url="/v1/x"), line("same")]
    assert errors(client, rows, b"\r\n".join(lines)) == [
        ("invalid_json_line", 2, None),
        ("missing_required_parameter", 3, "custom_id"),
        ("invalid_method", 4, "method"),
        ("invalid_url", 5, "url"),
        ("duplicate_custom_id", 6, "custom_id"),
    ]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n"])
def test_a_file_without_requests_is_empty(client: Client, rows: SimpleNamespace, content: bytes) -> None:
    assert errors(client, rows, content) == [("empty_file", None, None)]


def test_a_utf16_file_is_no_json(client: Client, rows: SimpleNamespace) -> None:
    assert errors(client, rows, line().decode().encode("utf-16"))[0] == ("invalid_json_line", 1, None)


def test_the_first_hundred_errors_are_kept(client: Client, rows: SimpleNamespace) -> None:
    found = errors(client, rows, b"{\n" * 150)
    assert [number for _, number, _ in found] == list(range(1, 101))


def test_more_requests_than_a_batch_may_have(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_BATCH_MAX_ITEMS = 2
    content = b"\n".join(line(name) for name in "abc")
    assert errors(client, rows, content) == [("too_many_tasks", None, None)]
    assert validated(client, rows, "a", "b").total_items == 2


def test_a_line_over_the_limit_of_a_request_is_named_and_not_held(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_MAX_REQUEST_BYTES = 2048
    long = line("b", body=body("x" * 2048))
    assert errors(client, rows, b"\n".join([line("a"), long, b"{"])) == [
        ("invalid_json_line", 2, None),
        ("invalid_json_line", 3, None),
    ]


@pytest.mark.parametrize(
    ("endpoint", "shape"), [("/v1/responses", "openai_responses"), ("/v1/embeddings", "openai_embeddings")]
)
def test_lines_name_the_batchs_endpoint(
    client: Client, rows: SimpleNamespace, endpoint: str, shape: str
) -> None:
    assert errors(client, rows, line(), endpoint=endpoint) == [("invalid_url", 1, "url")]
    batch = create(client, rows, line(url=endpoint), endpoint=endpoint)
    validate_batch(batch.id)
    assert status(client, rows, batch)["status"] == "in_progress"
    assert Batch.objects.get(id=batch.id).shape == shape


def test_an_owner_without_room_for_the_items_is_told(
    client: Client, rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 3
    validated(client, rows, "a", "b")
    content = b"\n".join([line("a"), line("b")])
    assert errors(client, rows, content) == [("too_many_open_items", None, None)]


def test_a_full_owner_creates_none(client: Client, rows: SimpleNamespace, settings: Settings) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 2
    first = validated(client, rows, "a", "b")
    response = post(client, rows, input_file_id=File.objects.get(id__in=[first.input_file_id]).public_id)
    assert (response.status_code, response.json()["error"]["code"]) == (429, "too_many_open_items")
    assert Batch.objects.count() == 1


def test_validating_again_changes_nothing(client: Client, rows: SimpleNamespace) -> None:
    batch = validated(client, rows, "a", "b")
    validate_batch(batch.id)
    assert BatchItem.objects.filter(batch=batch).count() == 2


def test_a_batch_cancelled_before_its_validation_ends_as_cancelled(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = create(client, rows, line())
    assert cancel_batch(batch)
    found = status(client, rows, batch)
    assert (found["status"], bool(found["cancelling_at"])) == ("cancelling", True)
    validate_batch(batch.id)
    finalize_batch(batch.id)
    found = status(client, rows, batch)
    assert (found["status"], found["output_file_id"], found["error_file_id"]) == ("cancelled", None, None)
    assert (found["cancelled_at"] is None, found["usage"], found["in_progress_at"]) == (False, None, None)
    assert BatchItem.objects.filter(batch=batch).count() == 0


def test_a_batch_that_expires_before_its_validation_is_expired(client: Client, rows: SimpleNamespace) -> None:
    batch = create(client, rows, line())
    Batch.objects.filter(id=batch.id).update(expires_at=Now())
    expire_batch(batch.id)
    validate_batch(batch.id)
    finalize_batch(batch.id)
    assert status(client, rows, batch)["status"] == "expired"


def test_the_repair_of_ended_batches_leaves_one_that_waits_for_validation(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = create(client, rows, line())
    end_complete_batches()
    assert status(client, rows, batch)["status"] == "validating"


def test_a_deleted_input_file_is_validated_all_the_same(client: Client, rows: SimpleNamespace) -> None:
    batch = create(client, rows, line())
    File.objects.filter(id__in=[batch.input_file_id]).update(deleted_at=Now())
    validate_batch(batch.id)
    assert status(client, rows, batch)["status"] == "in_progress"


def test_a_row_that_somebody_removed_fails_the_batch(client: Client, rows: SimpleNamespace) -> None:
    batch = create(client, rows, line())
    File.objects.filter(id__in=[batch.input_file_id]).delete()
    validate_batch(batch.id)
    found = status(client, rows, batch)
    assert [error["code"] for error in found["errors"]["data"]] == ["input_file_missing"]


def test_a_failed_validation_leaves_no_payload_behind(client: Client, rows: SimpleNamespace) -> None:
    batch = create(client, rows, line() + b"\n{")
    validate_batch(batch.id)
    with pytest.raises(Exception, match="requests"):
        open_store().read_requests(batch.id)


@pytest.mark.parametrize("content", [line(), b"{"], ids=["good", "wrong"])
def test_a_cancel_while_the_file_is_read_wins(client: Client, rows: SimpleNamespace, content: bytes) -> None:
    batch = create(client, rows, content)
    checked = validate._check_and_pack(batch, File.objects.get(id__in=[batch.input_file_id]))
    cancel_batch(batch)
    if checked.errors:
        validate._fail(batch, checked.errors)
    else:
        validate._store_items(batch, checked)
    assert not BatchItem.objects.filter(batch=batch).exists()
    finalize_batch(batch.id)
    assert status(client, rows, batch)["status"] == "cancelled"


def test_of_two_validations_at_once_one_makes_the_items(client: Client, rows: SimpleNamespace) -> None:
    batch = create(client, rows, line())
    file = File.objects.get(id__in=[batch.input_file_id])
    both = [validate._check_and_pack(batch, file) for _ in range(2)]
    for checked in both:
        validate._store_items(batch, checked)
    assert BatchItem.objects.filter(batch=batch).count() == 1


def test_a_cancelled_batch_is_read_no_further(
    client: Client, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_reader, "PIECE_BYTES", 16)
    batch = create(client, rows, line() * 100)
    file = File.objects.get(id__in=[batch.input_file_id])
    cancel_batch(batch)
    with pytest.raises(validate.NoLongerWaiting):
        validate._check_and_pack(batch, file)
    validate_batch(batch.id)
    assert not BatchItem.objects.filter(batch=batch).exists()


def test_what_killed_validations_left_goes_with_a_good_one(client: Client, rows: SimpleNamespace) -> None:
    batch = create(client, rows, line())
    killed = open_store().open_requests_writer(batch.id)
    killed.write(b"half of it")
    validate_batch(batch.id)
    folder = Path(configured.RELAY_BATCH_PAYLOAD_DIR, batch.id.hex)
    assert [path.name for path in folder.iterdir()] == ["requests"]
    with pytest.raises(PayloadWriteError):
        killed.commit()
    killed.__exit__(None, None, None)
    assert stored_requests(batch)


def test_a_sweeper_of_the_release_before_cannot_end_a_batch_that_waits_for_its_validation(
    client: Client, rows: SimpleNamespace
) -> None:
    """To it, a batch without items is complete."""
    batch = create(client, rows, line())
    with pytest.raises(IntegrityError), transaction.atomic():
        end_complete_batch(batch.id)
    validate_batch(batch.id)
    assert status(client, rows, batch)["status"] == "in_progress"
