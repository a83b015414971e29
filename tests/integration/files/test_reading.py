"""Files read, listed and deleted, by their owner alone."""

from __future__ import annotations

import json
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models.functions import Now

from batches.models import File
from batches.payloads import open_store
from routing.models import Policy
from tests.support.calls.file_calls import LINES, error_of, upload
from tests.support.rows.catalog import make_caller

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import DjangoAssertNumQueries, Settings

pytestmark = pytest.mark.django_db
CONTENT = bytes(range(256)) * 10


def get(client: Client, rows: SimpleNamespace, path: str = "", **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(f"/v1/files{path}", headers=rows.headers | named)


def ids(client: Client, rows: SimpleNamespace, query: str = "") -> list[str]:
    response = get(client, rows, query)
    assert response.status_code == 200, response.content
    listed = json.loads(response.content)
    found = [file["id"] for file in listed["data"]]
    assert listed["object"] == "list"
    assert (listed["first_id"], listed["last_id"]) == ((found[0], found[-1]) if found else (None, None))
    return found


def test_a_file_reads_as_it_was_answered(client: Client, rows: SimpleNamespace) -> None:
    file = upload(client, rows)
    read = json.loads(get(client, rows, f"/{file.public_id}/").content)
    assert read == json.loads(get(client, rows).content)["data"][0]
    assert (read["id"], read["bytes"], read["filename"]) == (file.public_id, len(LINES), "in.jsonl")


def test_pages_go_both_ways_and_deleted_files_are_still_cursors(
    client: Client, rows: SimpleNamespace
) -> None:
    made = [upload(client, rows).public_id for _ in range(5)]
    assert ids(client, rows) == made[::-1]
    assert ids(client, rows, "?order=asc") == made
    assert ids(client, rows, "?limit=2") == made[:2:-1]
    assert ids(client, rows, f"?limit=2&after={made[3]}") == [made[2], made[1]]
    assert ids(client, rows, f"?order=asc&after={made[1]}") == made[2:]
    assert client.delete(f"/v1/files/{made[3]}", headers=rows.headers).status_code == 200
    assert ids(client, rows, f"?after={made[3]}") == made[2::-1]
    assert ids(client, rows, f"?order=asc&after={made[4]}") == []


def test_has_more_says_whether_there_are_more(client: Client, rows: SimpleNamespace) -> None:
    for _ in range(3):
        upload(client, rows)
    assert [json.loads(get(client, rows, f"?limit={n}").content)["has_more"] for n in (2, 3, 4)] == [
        True,
        False,
        False,
    ]


def test_a_list_can_be_narrowed_to_a_purpose(client: Client, rows: SimpleNamespace) -> None:
    first, second = upload(client, rows), upload(client, rows)
    File.objects.filter(id=first.id).update(purpose="batch_output")
    assert ids(client, rows, "?purpose=batch") == [second.public_id]
    assert ids(client, rows, "?purpose=batch_output") == [first.public_id]
    assert ids(client, rows, "?purpose=fine-tune") == ids(client, rows, "?purpose=%00") == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=10001", "limit"),
        ("limit=x", "limit"),
        ("order=newest", "order"),
        ("after=file-" + "0" * 32, "after"),
        ("after=x", "after"),
        ("after=%00", "after"),
        ("after=", "after"),
    ],
)
def test_a_parameter_that_is_wrong_is_named(
    client: Client, rows: SimpleNamespace, query: str, param: str
) -> None:
    assert error_of(get(client, rows, f"?{query}")) == (400, "invalid_field", param)


def test_a_list_takes_as_many_queries_however_long_it_is(
    client: Client, rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    made = [upload(client, rows).public_id for _ in range(4)]
    get(client, rows)
    with django_assert_num_queries(4):  # who asks, the owner, the cursor, the page
        assert len(ids(client, rows, f"?after={made[-1]}")) == 3


@pytest.mark.parametrize("gone", ["stranger", "unknown", "malformed", "deleted", "expired", "retention"])
@pytest.mark.parametrize("path", ["", "/content"])
def test_what_is_not_there_for_the_caller_is_the_same_404(
    client: Client, rows: SimpleNamespace, settings: Settings, gone: str, path: str
) -> None:
    file = upload(client, rows)
    file_id, headers = file.public_id, rows.headers
    match gone:
        case "stranger":
            headers = {"Authorization": f"Bearer {make_caller(rows).relay_key_value}"}
        case "unknown":
            file_id = "file-" + "0" * 32
        case "malformed":
            file_id = file_id.upper()
        case "deleted":
            assert client.delete(f"/v1/files/{file_id}", headers=headers).status_code == 200
        case "expired":
            File.objects.update(expires_at=Now())
        case "retention":
            settings.RELAY_BATCH_RETENTION_DAYS = 1
            File.objects.update(created_at=Now() - timedelta(days=1, seconds=1))
    response = client.get(f"/v1/files/{file_id}{path}", headers=headers)
    message = "There is no such file."
    assert json.loads(response.content)["error"] == {
        "message": message,
        "type": "invalid_request_error",
        "param": None,
        "code": "not_found",
    }
    assert response["x-should-retry"] == "false"
    assert client.delete(f"/v1/files/{file_id}", headers=headers).content == response.content
    assert json.loads(client.get("/v1/files", headers=headers).content)["data"] == [] or gone in (
        "unknown",
        "malformed",
    )


@pytest.mark.parametrize(
    "file_id", ["x", "file-", "file-1_" + "0" * 30, "file-" + "g" * 32, "%00", "a" * 3000]
)
def test_an_id_that_is_none_of_ours_is_a_404(client: Client, rows: SimpleNamespace, file_id: str) -> None:
    assert error_of(get(client, rows, f"/{file_id}")) == (404, "not_found", None)


def test_a_credential_that_may_not_create_may_read_and_delete(client: Client, rows: SimpleNamespace) -> None:
    file = upload(client, rows)
    Policy.objects.update(enabled=False)
    assert get(client, rows, f"/{file.public_id}/content").getvalue() == LINES
    deleted = client.delete(f"/v1/files/{file.public_id}", headers=rows.headers)
    assert json.loads(deleted.content) == {"id": file.public_id, "object": "file", "deleted": True}


def test_content_is_the_bytes_with_their_name(client: Client, rows: SimpleNamespace) -> None:
    file = upload(client, rows, CONTENT, filename="näme.jsonl")
    response = get(client, rows, f"/{file.public_id}/content", Accept="application/binary")
    assert (response.status_code, response.getvalue()) == (200, CONTENT)
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Length"] == str(len(CONTENT))
    assert response["Content-Disposition"] == "attachment; filename*=utf-8''n%C3%A4me.jsonl"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Accept-Ranges"] == "bytes"


def test_content_is_compressed_when_that_is_accepted_and_no_range_is_asked_for(
    client: Client, rows: SimpleNamespace
) -> None:
    file = upload(client, rows, CONTENT)
    path = f"/{file.public_id}/content"
    whole = get(client, rows, path, Accept_Encoding="gzip")
    assert whole["Content-Encoding"] == "gzip"
    assert "Content-Length" not in whole
    assert zlib.decompress(whole.getvalue(), wbits=31) == CONTENT
    part = get(client, rows, path, Accept_Encoding="gzip", Range="bytes=1-2")
    assert (part.getvalue(), part.get("Content-Encoding")) == (CONTENT[1:3], None)
    assert get(client, rows, path, Accept_Encoding="gzip;q=0").getvalue() == CONTENT


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        ("bytes=2550-", 2550, 2559),
        ("bytes=-3", 2557, 2559),
        ("bytes=-999999", 0, 2559),
        ("bytes=2559-99999999999999999999999999", 2559, 2559),
        ("BYTES = 1 - 2", 1, 2),
    ],
)
def test_a_range_is_honoured(
    client: Client, rows: SimpleNamespace, asked: str, first: int, last: int
) -> None:
    file = upload(client, rows, CONTENT)
    response = get(client, rows, f"/{file.public_id}/content", Range=asked)
    assert (response.status_code, response.getvalue()) == (206, CONTENT[first : last + 1])
    assert response["Content-Range"] == f"bytes {first}-{last}/{len(CONTENT)}"
    assert response["Content-Length"] == str(last - first + 1)


@pytest.mark.parametrize("asked", ["bytes=2560-", "bytes=9999-10000", "bytes=-0"])
def test_a_range_behind_the_end_is_refused_with_the_size(
    client: Client, rows: SimpleNamespace, asked: str
) -> None:
    file = upload(client, rows, CONTENT)
    response = get(client, rows, f"/{file.public_id}/content", Range=asked)
    assert error_of(response) == (416, "range_not_satisfiable", None)
    assert response["Content-Range"] == f"bytes */{len(CONTENT)}"


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=0-1,3-4",
        "bytes=5-2",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "items=0-1",
        "bytes=+1-2",
        "bytes=" + "1" * 99 + "-",
    ],
)
def test_several_ranges_or_a_malformed_one_get_the_whole(
    client: Client, rows: SimpleNamespace, asked: str
) -> None:
    file = upload(client, rows, CONTENT)
    response = get(client, rows, f"/{file.public_id}/content", Range=asked)
    assert (response.status_code, response.getvalue()) == (200, CONTENT)


def test_if_range_decides_by_our_etag(client: Client, rows: SimpleNamespace) -> None:
    path = f"/{upload(client, rows, CONTENT).public_id}/content"
    etag = get(client, rows, path)["ETag"]
    for said, status in (
        (etag, 206),
        (f"W/{etag}", 200),
        ('"other"', 200),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 200),
    ):
        assert get(client, rows, path, Range="bytes=0-0", If_Range=said).status_code == status


def test_head_says_what_get_would(client: Client, rows: SimpleNamespace) -> None:
    file = upload(client, rows, CONTENT)
    response = client.head(
        f"/v1/files/{file.public_id}/content", headers=rows.headers | {"Range": "bytes=0-1"}
    )
    assert (response.status_code, response.getvalue()) == (200, b"")
    assert response["Content-Length"] == str(len(CONTENT))


def test_an_empty_file_is_given_back_empty(client: Client, rows: SimpleNamespace) -> None:
    path = f"/{upload(client, rows, b'').public_id}/content"
    response = get(client, rows, path)
    assert (response.status_code, response.getvalue(), response["Content-Length"]) == (200, b"", "0")
    assert error_of(get(client, rows, path, Range="bytes=0-"))[0] == 416


@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=0-1"}, {"Accept_Encoding": "gzip"}])
def test_content_that_is_missing_is_a_503_and_never_an_empty_answer(
    client: Client, rows: SimpleNamespace, headers: dict[str, str]
) -> None:
    file = upload(client, rows, CONTENT)
    open_store().discard_file(file.id)
    response = get(client, rows, f"/{file.public_id}/content", **headers)
    assert error_of(response) == (503, "store_unavailable", None)
    assert response["Retry-After"] == "5"
