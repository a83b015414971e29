"""`POST /v1/files`: what is taken, what is refused, and that nothing of what was refused is kept."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.conf import settings as configured

from batches.models import File
from routing.models import Policy
from tests.support.calls.file_calls import (
    BOUNDARY,
    LINES,
    content_of,
    error_of,
    file_form,
    file_of,
    form,
    part,
    post,
    stored_folders,
    upload,
)

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db
PURPOSE = part("purpose", b"batch")
FILE = part("file", LINES, filename="in.jsonl")
ANCHOR, SECONDS = part("expires_after[anchor]", b"created_at"), part("expires_after[seconds]", b"3600")


@pytest.fixture(autouse=True)
def _kept_nothing_of_what_was_refused(db: None) -> object:
    before = stored_folders()
    yield
    stored = {file.public_id for file in File.objects.all()}
    assert stored_folders() - before == stored - before


def test_a_file_is_stored_whole_and_answered_as_openais_file_object(
    client: Client, rows: SimpleNamespace
) -> None:
    response = post(client, rows, file_form())
    file = file_of(response)
    assert json.loads(response.content) == {
        "id": f"file-{file.id.hex}",
        "object": "file",
        "bytes": len(LINES),
        "created_at": int(file.created_at.timestamp()),
        "expires_at": None,
        "filename": "in.jsonl",
        "purpose": "batch",
        "status": "processed",
        "status_details": None,
    }
    assert content_of(file) == LINES


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\r\n",
        b"--b0undary",
        b"\r\n--b0undar",
        b"\n--b0undary\n",
        b"\xef\xbb\xbf{}\r\n",
        bytes(range(256)) * 5000,
        "\u2028".encode(),
    ],
)
def test_every_byte_is_kept(client: Client, rows: SimpleNamespace, content: bytes) -> None:
    file = upload(client, rows, content)
    assert file.size_bytes == len(content)
    assert content_of(file) == content


@pytest.mark.parametrize(
    "parts",
    [
        (FILE, PURPOSE),
        (FILE, SECONDS, PURPOSE, ANCHOR),
        (part("unknown", b"x" * 100_000), PURPOSE, part("", b""), FILE, part("file2", b"y", filename="z")),
        (PURPOSE, part("file", LINES, "Content-Type: text/plain", "content-transfer-encoding: binary")),
        (PURPOSE, part("file", LINES, f"Content-Length: {len(LINES)}", filename="in.jsonl")),
    ],
    ids=["file first", "file in the middle", "unknown parts", "no filename", "length of the part"],
)
def test_parts_come_in_any_order(client: Client, rows: SimpleNamespace, parts: tuple[bytes, ...]) -> None:
    assert content_of(file_of(post(client, rows, form(*parts)))) == LINES


def test_a_compressed_body_is_decoded(client: Client, rows: SimpleNamespace) -> None:
    packed = gzip.compress(file_form())
    assert content_of(file_of(post(client, rows, packed, Content_Encoding="gzip"))) == LINES


@pytest.mark.parametrize(
    "fields",
    [
        {"expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"},
        {"expires_after.anchor": "created_at", "expires_after.seconds": "3600"},
        {"expires_after": '{"anchor": "created_at", "seconds": 3600}'},
    ],
    ids=["brackets", "dots", "object"],
)
def test_a_file_expires_after_the_seconds_that_each_sdk_says_in_its_way(
    client: Client, rows: SimpleNamespace, fields: dict[str, str]
) -> None:
    file = file_of(post(client, rows, file_form(fields=fields)))
    assert file.expires_at == file.created_at + timedelta(hours=1)


@pytest.mark.parametrize(
    ("parts", "code", "param"),
    [
        ((FILE,), "missing_field", "purpose"),
        ((PURPOSE,), "missing_field", "file"),
        ((), "missing_field", "purpose"),
        ((part("purpose", b"fine-tune"), FILE), "invalid_field", "purpose"),
        ((FILE, part("purpose", b"fine-tune")), "invalid_field", "purpose"),
        ((FILE, part("purpose", b"batch\n")), "invalid_field", "purpose"),
        ((FILE, part("purpose", b"\xff\x00")), "invalid_field", "purpose"),
        ((FILE, part("purpose", b"b" * 2000)), "invalid_field", "purpose"),
        ((PURPOSE, PURPOSE, FILE), "invalid_field", "purpose"),
        ((PURPOSE, FILE, FILE), "invalid_field", "file"),
        ((PURPOSE, FILE, ANCHOR), "missing_field", "expires_after[seconds]"),
        ((PURPOSE, FILE, SECONDS), "missing_field", "expires_after[anchor]"),
        (
            (PURPOSE, FILE, SECONDS, part("expires_after[anchor]", b"now")),
            "invalid_field",
            "expires_after[anchor]",
        ),
        ((PURPOSE, FILE, part("expires_after", b"3600")), "invalid_field", "expires_after"),
        ((PURPOSE, FILE, part("expires_after", b"[" * 900)), "invalid_field", "expires_after"),
        ((PURPOSE, FILE, ANCHOR, part("expires_after", b"{}")), "conflicting_fields", "expires_after"),
        (
            (PURPOSE, part("file", LINES, "Content-Transfer-Encoding: base64")),
            "invalid_multipart",
            "Content-Transfer-Encoding",
        ),
        ((PURPOSE, *[part("x", b"")] * 10_000, FILE), "invalid_multipart", None),
        ((PURPOSE, part("x", b"", "X-Long: " + "y" * 1_000_000), FILE), "invalid_multipart", None),
        ((PURPOSE, part("x", b"", *["X-More: y"] * 20), FILE), "invalid_multipart", None),
        ((PURPOSE, part("file", LINES, "Content-Length: 3")), "invalid_multipart", None),
        ((PURPOSE, b"X: y\r\n\r\nno disposition", FILE), "invalid_multipart", None),
        ((PURPOSE, b"no header\r\n\r\n", FILE), "invalid_multipart", None),
    ],
)
def test_a_form_that_is_wrong_is_refused_and_says_where(
    client: Client, rows: SimpleNamespace, parts: tuple[bytes, ...], code: str, param: str | None
) -> None:
    assert error_of(post(client, rows, form(*parts))) == (400, code, param)


@pytest.mark.parametrize(
    "seconds", ["3599", "2592001", "0", "-3600", "3600.0", "1e4", "", " 3600", "٣٦٠٠", "9" * 900]
)
def test_a_lifetime_that_openai_does_not_take_is_refused(
    client: Client, rows: SimpleNamespace, seconds: str
) -> None:
    fields = {"expires_after[anchor]": "created_at", "expires_after[seconds]": seconds}
    refused = (400, "invalid_field", "expires_after[seconds]")
    assert error_of(post(client, rows, file_form(fields=fields))) == refused


@pytest.mark.parametrize("end", [1, 10, 40, 80, 170, -4, -9, -30])
def test_a_form_that_is_cut_short_is_refused(client: Client, rows: SimpleNamespace, end: int) -> None:
    assert error_of(post(client, rows, file_form()[:end])) == (400, "invalid_multipart", None)


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "application/json",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=" + "b" * 5000,
        'multipart/form-data; boundary="é"',
        f"multipart/mixed; boundary={BOUNDARY}",
    ],
)
def test_a_body_that_is_no_form_is_refused(client: Client, rows: SimpleNamespace, content_type: str) -> None:
    response = client.post("/v1/files", file_form(), content_type=content_type, headers=rows.headers)
    assert error_of(response) == (400, "invalid_multipart", "Content-Type")


def test_a_body_with_another_boundary_is_refused(client: Client, rows: SimpleNamespace) -> None:
    assert error_of(post(client, rows, file_form(), boundary="other")) == (400, "invalid_multipart", None)


@pytest.mark.parametrize(
    "content_type",
    [
        f'Multipart/Form-Data; charset=utf-8; Boundary="{BOUNDARY}"',
        f"multipart/form-data;boundary={BOUNDARY}",
    ],
)
def test_the_boundary_may_be_written_in_each_way(
    client: Client, rows: SimpleNamespace, content_type: str
) -> None:
    response = client.post("/v1/files/", file_form(), content_type=content_type, headers=rows.headers)
    assert content_of(file_of(response)) == LINES


@pytest.mark.parametrize(
    ("filename", "kept"),
    [
        ("näme 文 🙂.jsonl", "näme 文 🙂.jsonl"),
        ("", "upload"),
        (" ", "upload"),
        ("..", "upload"),
        ("../../etc/passwd", "passwd"),
        ("C:\\\\data\\\\in.jsonl", "in.jsonl"),
        ("a%22b.jsonl", 'a"b.jsonl'),
        ('a\\"b.jsonl', 'a"b.jsonl'),
        ("a%0D%0AX: y", "a__X: y"),
        ("n\0l", "n_l"),
        ("x" * 2000, "x" * 1024),
        ("é" * 2000, "é" * 1024),
        ("a; filename*=UTF-8''b", "a; filename*=UTF-8''b"),
    ],
)
def test_any_name_is_accepted(client: Client, rows: SimpleNamespace, filename: str, kept: str) -> None:
    file = upload(client, rows, filename=filename)
    assert file.filename == kept
    assert client.get(f"/v1/files/{file.public_id}/content", headers=rows.headers).getvalue() == LINES


@pytest.mark.parametrize(
    ("disposition", "kept"),
    [
        (b"filename*=UTF-8''na%C3%AFve%20%E2%82%AC.jsonl", "naïve €.jsonl"),
        (b"filename=\"plain\"; filename*=utf-8'en'better", "better"),
        (b"filename*=iso-8859-1''na%EFve", "naïve"),
        (b"filename*=UTF-8''%FF%00%ED%A0%80", "\ufffd_\ufffd\ufffd\ufffd"),
        (b'filename="\xff\xfe"', "\ufffd\ufffd"),
        (b"filename=bare.jsonl", "bare.jsonl"),
        (b"FILENAME=bare.jsonl", "bare.jsonl"),
        (b"filename", "upload"),
    ],
)
def test_a_name_may_be_written_in_each_way(
    client: Client, rows: SimpleNamespace, disposition: bytes, kept: str
) -> None:
    sent = b'Content-Disposition: form-data; name="file"; ' + disposition + b"\r\n\r\n" + LINES
    assert file_of(post(client, rows, form(PURPOSE, sent))).filename == kept


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("is_last", [True, False])
def test_the_limit_holds_for_the_files_own_bytes(
    client: Client, rows: SimpleNamespace, settings: Settings, over: int, is_last: bool
) -> None:
    settings.RELAY_MAX_FILE_BYTES = 500_000
    parts = [PURPOSE, part("file", bytes(500_000 + over), filename="f"), part("x", bytes(500_000))]
    response = post(client, rows, form(*(parts[:2] if is_last else parts)))
    if over:
        assert error_of(response) == (413, "body_too_large", "file")
        assert response["x-should-retry"] == "false"
    else:
        assert file_of(response).size_bytes == 500_000


@pytest.mark.parametrize("packed", [True, False])
def test_the_rest_of_the_form_is_limited_too(
    client: Client, rows: SimpleNamespace, settings: Settings, packed: bool
) -> None:
    settings.RELAY_MAX_FILE_BYTES = 1024
    body = form(PURPOSE, FILE, part("x", bytes(1_100_000)))
    response = (
        post(client, rows, gzip.compress(body), Content_Encoding="gzip")
        if packed
        else post(client, rows, body)
    )
    assert error_of(response) == (413, "body_too_large", None)


def test_a_gzip_bomb_stops_at_the_limit(client: Client, rows: SimpleNamespace, settings: Settings) -> None:
    settings.RELAY_MAX_FILE_BYTES = 1024
    bomb = gzip.compress(form(PURPOSE, part("file", bytes(100_000_000), filename="f")))
    assert error_of(post(client, rows, bomb, Content_Encoding="gzip")) == (413, "body_too_large", "file")


def test_a_credential_that_may_not_create_is_refused(client: Client, rows: SimpleNamespace) -> None:
    Policy.objects.update(enabled=False)
    for headers in ({}, {"Idempotency_Key": "k"}, {"x_stainless_retry_count": "1"}):
        assert error_of(post(client, rows, file_form(), **headers)) == (403, "policy_disabled", None)


def test_no_credential_stores_nothing(client: Client, rows: SimpleNamespace) -> None:
    rows.headers = {}
    assert error_of(post(client, rows, file_form())) == (401, "missing_credential", None)


def test_the_default_limit_is_200_mib() -> None:
    assert configured.RELAY_MAX_FILE_BYTES == 200 << 20
