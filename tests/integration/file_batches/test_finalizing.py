"""Finalizing: what stands in the output file and in the error file, and when."""

from __future__ import annotations

import contextlib
import json
import resource
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as configured
from django.db.models.functions import Now

from batches.completion.cancel import cancel_batch
from batches.file_batches import finalize
from batches.file_batches.finalize import finalize_batch
from batches.models import BatchItem, File
from batches.payloads import PayloadReadError, PayloadStoreUnavailable, PayloadWriteError, open_store
from batches.results.result_rows import PAGE_ITEMS
from tests.support.rows.catalog import make_catalog
from tests.support.rows.file_batches import content_of, finalized, lines_of, path_of, status, validated
from tests.support.rows.item_outcomes import complete, complete_inline, discard, end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db
ODD = '{"t":"\u2028\u0085\u2029é😀\\u0000\\ud800","big":1180591620717411303424,"n":1.0,\r\n"m":1e3}'


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def test_successes_are_in_the_output_file_and_failures_in_the_error_file(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = validated(client, rows, *"abcd")
    complete(batch, 0, ODD.encode())
    discard(batch, 1, error_code="model_not_found", error="model no-such is not known")
    complete_inline(batch, 2, b'{"choices":[]}')
    discard(batch, 3, error_code="timeout", error="timed out after 300 s")
    end(batch)
    before = status(client, rows, batch)
    assert (before["status"], before["output_file_id"], before["completed_at"]) == ("finalizing", None, None)
    found = finalized(client, rows, batch)
    assert found["status"] == "completed"
    assert found["request_counts"] == {"total": 4, "completed": 2, "failed": 2}
    assert found["created_at"] <= found["in_progress_at"] <= found["finalizing_at"] <= found["completed_at"]
    output, errors = lines_of(found["output_file_id"]), lines_of(found["error_file_id"])
    assert [one["custom_id"] for one in output] == ["a", "c"]
    assert output[0]["response"]["body"] == json.loads(ODD)
    assert b'"big":1180591620717411303424,"n":1.0,  "m":1e3' in content_of(found["output_file_id"])
    item = BatchItem.objects.get(batch=batch, idx=2)
    assert output[1] == {
        "id": f"batch_req_{item.id.hex}",
        "custom_id": "c",
        "response": {"status_code": 200, "request_id": str(item.id), "body": {"choices": []}},
        "error": None,
    }
    assert [one["custom_id"] for one in errors] == ["b", "d"]
    assert errors[0]["response"]["status_code"] == 404
    assert errors[0]["response"]["body"]["error"] == {
        "message": "model no-such is not known",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_found",
    }
    assert (errors[1]["response"], errors[1]["error"]["code"]) == (None, "request_timeout")


def test_a_line_has_the_upstreams_name_of_its_call_or_the_items_id(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = validated(client, rows, *"abcd")
    refused: dict[str, Any] = {
        "error_code": "upstream_status",
        "error": "batch item: upstream status 400",
        "upstream_status": 400,
    }
    in_body = b'{"type":"error","error":{"message":"no"},"request_id":"req_body"}'
    complete(batch, 0, b"{}")
    discard(batch, 1, **refused, upstream_error=b'{"error":{"message":"no"}}', upstream_request_id="req_b")
    discard(batch, 2, **refused, upstream_error=in_body)
    discard(batch, 3, error_code="no_keys", error="no keys")
    BatchItem.objects.filter(batch=batch, idx=0).update(upstream_request_id="req_a")
    end(batch)
    found = finalized(client, rows, batch)
    lines = lines_of(found["output_file_id"]) + lines_of(found["error_file_id"])
    last = BatchItem.objects.get(batch=batch, idx=3)
    assert [one["response"]["request_id"] for one in lines] == ["req_a", "req_b", "req_body", str(last.id)]


def test_the_files_are_the_owners_and_have_names_that_say_whose_they_are(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = validated(client, rows, *"ab")
    complete(batch, 0, b"{}")
    discard(batch, 1, error_code="timeout", error="late")
    end(batch)
    finalize_batch(batch.id)
    batch.refresh_from_db()
    for name, file_id in (("output", batch.output_file_id), ("errors", batch.error_file_id)):
        file = File.objects.get(id__in=[file_id])
        assert (file.owner_id, file.purpose) == (batch.owner_id, "batch_output")
        assert file.filename == f"batch_{batch.id.hex}_{name}.jsonl"
        assert file.size_bytes == len(content_of(file.public_id))
        assert file.expires_at is None


def test_files_expire_as_asked(client: Client, rows: SimpleNamespace) -> None:
    batch = validated(client, rows, output_expires_after={"anchor": "created_at", "seconds": 7200})
    complete(batch, 0, b"{}")
    end(batch)
    finalize_batch(batch.id)
    file = File.objects.get(purpose="batch_output")
    assert file.expires_at == file.created_at + timedelta(hours=2)


@pytest.mark.parametrize(("success", "names"), [(True, ["output"]), (False, ["error"])])
def test_a_file_without_lines_is_none(
    client: Client, rows: SimpleNamespace, success: bool, names: list[str]
) -> None:
    batch = validated(client, rows, *"ab")
    for idx in range(2):
        if success:
            complete(batch, idx, b"{}")
        else:
            discard(batch, idx, error_code="upstream_unreachable", error="upstream unreachable")
    end(batch)
    found = finalized(client, rows, batch)
    assert found["status"] == "completed"
    assert [name for name in ("output", "error") if found[f"{name}_file_id"]] == names
    assert File.objects.filter(purpose="batch_output").count() == 1


UPSTREAM_ERRORS = [
    (429, b'{"error":{"message":"slow down","code":1.0}}', {"message": "slow down", "code": 1.0}),
    (400, b'{"error": "a string"}', "a string"),
    (401, b'{"error":{"message":"\xc3\xa9\xe2\x80\xa8"}}', {"message": "é\u2028"}),
]


@pytest.mark.parametrize(("code", "upstream_body", "error"), UPSTREAM_ERRORS)
def test_an_upstreams_error_object_is_passed_on(
    client: Client, rows: SimpleNamespace, code: int, upstream_body: bytes, error: Any
) -> None:
    found = _error_line(client, rows, code, upstream_body)
    assert (found["response"]["status_code"], found["response"]["body"]["error"]) == (code, error)


NO_ERROR_OBJECTS = [
    (502, b"<html>Bad Gateway</html>", "batch item: upstream status 502"),
    (400, b'{"error":{"message":"cut in the mid', "cut in the mid"),
    (404, b'{"detail":"no such model"}', "no such model"),
    (500, b"", "batch item: upstream status 500"),
    (400, b'{"error":null,"message":"said elsewhere"}', "said elsewhere"),
    (400, b'{"error":"\xff"}', "\ufffd"),
    (400, b'{"error":NaN}', '{"error":NaN}'),
    (422, b'[{"error":"in a list"}]', "in a list"),
    (302, b"", "batch item: upstream status 302"),
]


@pytest.mark.parametrize(("code", "upstream_body", "message"), NO_ERROR_OBJECTS)
def test_another_body_is_replaced_by_an_error_object_of_ours(
    client: Client, rows: SimpleNamespace, code: int, upstream_body: bytes, message: str
) -> None:
    found = _error_line(client, rows, code, upstream_body)
    assert found["response"]["status_code"] == (code if code >= 400 else 502)
    assert found["response"]["body"]["error"]["message"] == message
    assert found["response"]["body"]["error"]["code"] == "upstream_status"


def _error_line(client: Client, rows: SimpleNamespace, code: int, upstream_body: bytes) -> Any:
    batch = validated(client, rows)
    discard(
        batch,
        0,
        error_code="upstream_status",
        error=f"batch item: upstream status {code}",
        upstream_status=code,
        upstream_error=upstream_body,
    )
    end(batch)
    (found,) = lines_of(finalized(client, rows, batch)["error_file_id"])
    return found


OWN_FAILURES = {
    "upstream_unreachable": (502, "server_error"),
    "no_healthy_keys": (503, "server_error"),
    "cross_shape": (400, "invalid_request_error"),
    "model_not_allowed": (403, "permission_error"),
    "rate_limited": (429, "rate_limit_error"),
    "credential_revoked": (401, "invalid_request_error"),
    "policy_deleted": (403, "permission_error"),
    "worker_lost": (500, "server_error"),
    "invalid_item": (400, "invalid_request_error"),
    "usage_limit_exceeded": (429, "rate_limit_error"),
}


@pytest.mark.parametrize("code", OWN_FAILURES)
def test_a_failure_of_ours_has_the_status_that_stands_for_it(
    client: Client, rows: SimpleNamespace, code: str
) -> None:
    batch = validated(client, rows)
    discard(batch, 0, error_code=code, error="what went wrong")
    end(batch)
    (found,) = lines_of(finalized(client, rows, batch)["error_file_id"])
    error = found["response"]["body"]["error"]
    assert (found["response"]["status_code"], error["type"]) == OWN_FAILURES[code]
    assert (error["message"], error["code"], found["error"]) == ("what went wrong", code, None)
    assert found["response"]["request_id"]


def test_a_cancelled_batch_keeps_what_was_answered(client: Client, rows: SimpleNamespace) -> None:
    batch = validated(client, rows, *"abc")
    complete(batch, 1, b'{"paid":true}')
    cancel_batch(batch)
    assert status(client, rows, batch)["status"] == "cancelling"
    found = finalized(client, rows, batch)
    assert (found["status"], found["cancelled_at"] is None) == ("cancelled", False)
    assert found["request_counts"] == {"total": 3, "completed": 1, "failed": 0}
    assert [one["response"]["body"] for one in lines_of(found["output_file_id"])] == [{"paid": True}]
    cancelled = lines_of(found["error_file_id"])
    assert [one["custom_id"] for one in cancelled] == ["a", "c"]
    assert {one["error"]["code"] for one in cancelled} == {"batch_cancelled"}


def test_an_expired_batch_keeps_what_was_answered(client: Client, rows: SimpleNamespace) -> None:
    batch = validated(client, rows, *"ab")
    complete(batch, 0, b"{}")
    BatchItem.objects.filter(batch=batch, idx=1).update(state="expired", finished_at=Now())
    end(batch)
    found = finalized(client, rows, batch)
    assert (found["status"], found["expired_at"] is None) == ("expired", False)
    assert found["request_counts"] == {"total": 2, "completed": 1, "failed": 0}
    assert [one["error"]["code"] for one in lines_of(found["error_file_id"])] == ["batch_expired"]


def test_results_give_the_lines_of_both_files_in_the_order_of_the_requests(
    client: Client, rows: SimpleNamespace
) -> None:
    count = PAGE_ITEMS + 60
    batch = validated(client, rows, *[f"item-{number}" for number in range(count)])
    BatchItem.objects.filter(batch=batch).update(
        state="discarded", error_code="timeout", error="late", finished_at=Now()
    )
    BatchItem.objects.filter(batch=batch, idx=3).update(
        state="available", finished_at=None, error_code="", error=""
    )
    complete(batch, 3, b"{}")
    end(batch)
    early = client.get(path_of(batch, "/results"), headers=rows.headers)
    assert (early.status_code, early["x-should-retry"]) == (409, "false")
    found = finalized(client, rows, batch)
    response = client.get(path_of(batch, "/results"), headers=rows.headers)
    lines = response.getvalue().split(b"\n")[:-1]
    assert [json.loads(one)["custom_id"] for one in lines] == [f"item-{number}" for number in range(count)]
    in_files = content_of(found["output_file_id"]) + content_of(found["error_file_id"])
    assert sorted(lines) == sorted(in_files.split(b"\n")[:-1])


def test_finalizing_again_changes_nothing(client: Client, rows: SimpleNamespace) -> None:
    batch = validated(client, rows)
    complete(batch, 0, b"{}")
    end(batch)
    first = finalized(client, rows, batch)
    assert finalized(client, rows, batch) == first
    assert File.objects.filter(purpose="batch_output").count() == 1


def test_a_response_that_cannot_be_read_now_is_waited_for_and_then_becomes_an_error(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = validated(client, rows)
    complete(batch, 0, None)
    end(batch)
    with pytest.raises(PayloadReadError):
        finalize_batch(batch.id)
    assert status(client, rows, batch)["status"] == "finalizing"
    began = time.monotonic()
    with pytest.raises(PayloadReadError):
        finalize_batch(batch.id, clock=lambda: began + 299)
    finalize_batch(batch.id, clock=lambda: began + 301)
    found = status(client, rows, batch)
    (line,) = lines_of(found["error_file_id"])
    assert (line["response"]["status_code"], found["output_file_id"]) == (500, None)
    assert line["response"]["body"]["error"]["code"] == "load_result_failed"
    assert found["request_counts"] == {"total": 1, "completed": 1, "failed": 0}


def test_nothing_is_written_into_a_store_that_is_another_one(
    client: Client, rows: SimpleNamespace, settings: Settings, tmp_path: Path
) -> None:
    batch = validated(client, rows)
    complete_inline(batch, 0, b"{}")
    end(batch)
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "unmounted")
    with pytest.raises(PayloadStoreUnavailable):
        finalize_batch(batch.id)
    assert list(open_store().folders()) == []
    assert status(client, rows, batch)["status"] == "finalizing"


def test_a_batch_is_deleted_only_once_its_files_are_written_and_they_stay(
    client: Client, rows: SimpleNamespace
) -> None:
    batch = validated(client, rows)
    complete(batch, 0, b"{}")
    end(batch)
    assert client.delete(path_of(batch), headers=rows.headers).status_code == 409
    found = finalized(client, rows, batch)
    response = client.delete(path_of(batch), headers=rows.headers)
    assert response.json() == {"id": found["id"], "object": "batch", "deleted": True}
    assert client.get(path_of(batch), headers=rows.headers).status_code == 404
    assert lines_of(found["output_file_id"])


def test_of_two_finalizations_at_once_one_makes_the_files(client: Client, rows: SimpleNamespace) -> None:
    """The second wakes up with its lines written, when the first is done. Both write the same two objects."""
    batch = validated(client, rows, *"ab")
    complete(batch, 0, b"{}")
    discard(batch, 1, error_code="timeout", error="late")
    end(batch)
    before = set(open_store().folders())
    with contextlib.ExitStack() as stack:
        pairs = [
            tuple(
                finalize.ResultFile(file_id, open_store(), stack) for file_id in finalize._choose_ids(batch)
            )
            for _ in range(2)
        ]
        for output, errors in pairs:
            finalize._write_lines(batch, output, errors, may_be_unreadable=False, now=0.0)
            output.commit()
            errors.commit()
    for output, errors in pairs:
        finalize._store_rows(batch, output, errors)
    found = status(client, rows, batch)
    assert (found["status"], len(lines_of(found["output_file_id"]))) == ("completed", 1)
    assert File.objects.filter(purpose="batch_output").count() == 2
    assert len(set(open_store().folders()) - before) == 2


@contextlib.contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """A write beyond that fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def stored_files() -> set[Path]:
    return set(Path(configured.RELAY_BATCH_PAYLOAD_DIR).glob("file-*/content"))


def test_tries_that_fail_between_the_two_files_leave_one_copy(client: Client, rows: SimpleNamespace) -> None:
    """The output file fits and is committed; the error file, of many lines, does not."""
    batch = validated(client, rows, *[f"item-{number}" for number in range(20)])
    complete(batch, 0, b"{}")
    for idx in range(1, 20):
        discard(batch, idx, error_code="timeout", error="late")
    end(batch)
    before = stored_files()
    for _ in range(3):
        with files_of_at_most(1000), pytest.raises(PayloadWriteError):
            finalize_batch(batch.id)
    assert len(stored_files() - before) == 1
    assert status(client, rows, batch)["output_file_id"] is None
    found = finalized(client, rows, batch)
    assert (len(lines_of(found["output_file_id"])), len(lines_of(found["error_file_id"]))) == (1, 19)
    assert len(stored_files() - before) == 2
