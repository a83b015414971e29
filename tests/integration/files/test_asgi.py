"""Files under an ASGI server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batches.files.content import PIECE_BYTES
from batches.models import File
from batches.models.file import parse_file_id
from batches.payloads import PayloadReadError, open_store
from relaybatch.http.body.body_limits import max_sent_bytes
from tests.support.calls.file_calls import BOUNDARY, LINES, content_of, file_form, stored_folders
from tests.support.servers.asgi import AsgiRequest

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)
MIB = 1 << 20


def post(rows: SimpleNamespace, *pieces: bytes, **headers: str) -> AsgiRequest:
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    return AsgiRequest("/v1/files", "POST", rows.headers | kind | headers, pieces).run()


def upload(rows: SimpleNamespace, content: bytes) -> File:
    created = post(rows, file_form(content))
    assert created.status == 200
    file_id = parse_file_id(created.json["id"])
    assert file_id
    return File.objects.get(id=file_id)


def test_an_upload_in_pieces_is_stored_and_given_back(rows: SimpleNamespace) -> None:
    body = file_form()
    created = post(rows, body[:9], body[9:150], body[150:])
    assert created.status == 200
    assert content_of(File.objects.get()) == LINES
    path = f"/v1/files/{created.json['id']}/content"
    assert AsgiRequest(path, headers=rows.headers).run().content == LINES
    part = AsgiRequest(path, headers=rows.headers | {"Range": "bytes=1-3"}).run()
    assert (part.status, part.content) == (206, LINES[1:4])


def test_content_is_read_as_the_client_takes_it(rows: SimpleNamespace) -> None:
    file = upload(rows, bytes(12 * PIECE_BYTES))
    request = AsgiRequest(
        f"/v1/files/{file.public_id}/content",
        headers=rows.headers,
        on_part=lambda _: open_store().discard_file(file.id),
    )
    with pytest.raises(PayloadReadError):  # the server breaks the connection off
        request.run()
    assert request.status == 200
    assert len(request.content) < 12 * PIECE_BYTES


def test_an_upload_over_the_limit_is_refused_and_never_spooled_whole(
    rows: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_MAX_REQUEST_BYTES = settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES = MIB
    settings.RELAY_MAX_FILE_BYTES = 10 * MIB
    before = stored_folders()
    over = post(rows, file_form(bytes(10 * MIB + 1)))
    assert (over.status, over.json["error"]["code"]) == (413, "body_too_large")
    far_over = post(rows, *[bytes(MIB)] * 30)
    assert (far_over.status, far_over.json["error"]["code"]) in (
        (413, "body_too_large"),
        (400, "invalid_multipart"),
    )
    assert far_over.spooled_bytes == max_sent_bytes() + 1
    assert stored_folders() == before
