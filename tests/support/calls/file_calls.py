"""Uploads of files, and what is kept of them."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from batches.models import File
from batches.models.file import parse_file_id
from batches.payloads import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import SimpleNamespace

    from django.test import Client

PATH = "/v1/files"
BOUNDARY = "b0undary"
LINES = b'{"custom_id":"a"}\n{"custom_id":"b"}\n'


def part(name: str, content: bytes, *lines: str, filename: str | None = None) -> bytes:
    """`lines`: further headers of the part."""
    named = "" if filename is None else f'; filename="{filename}"'
    disposition = f'Content-Disposition: form-data; name="{name}"{named}'
    return "\r\n".join((disposition, *lines, "", "")).encode() + content


def form(*parts: bytes, boundary: str = BOUNDARY) -> bytes:
    opening, closing = f"--{boundary}\r\n".encode(), f"--{boundary}--\r\n".encode()
    return b"".join(opening + each + b"\r\n" for each in parts) + closing


def file_form(
    content: bytes = LINES,
    filename: str | None = "in.jsonl",
    fields: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    parts = [part(name, value.encode()) for name, value in ({"purpose": "batch"} | dict(fields)).items()]
    return form(*parts, part("file", content, filename=filename))


def post(
    client: Client, rows: SimpleNamespace, body: bytes, *, boundary: str = BOUNDARY, **headers: str
) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(
        PATH, body, content_type=f"multipart/form-data; boundary={boundary}", headers=rows.headers | named
    )


def upload(client: Client, rows: SimpleNamespace, content: bytes = LINES, filename: str = "in.jsonl") -> File:
    response = post(client, rows, file_form(content, filename))
    assert response.status_code == 200, response.content
    return file_of(response)


def file_of(response: Any) -> File:
    assert response.status_code == 200, response.content
    file_id = parse_file_id(json.loads(response.content)["id"])
    assert file_id
    return File.objects.get(id=file_id)


def content_of(file: File) -> bytes:
    return open_store().read_file(file.id, offset=0, length=file.size_bytes)


def stored_folders() -> set[str]:
    """The folders of files in the payload store."""
    return {folder for folder in open_store().folders() if folder.startswith("file-")}


def error_of(response: Any) -> tuple[int, str, str | None]:
    """Status, code and param."""
    error = json.loads(response.getvalue() if response.streaming else response.content)["error"]
    return response.status_code, error["code"], error["param"]
