"""Files and batches of files: their rows and contents, as an upload leaves them, and batches created over HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db.models.functions import Now

from batches.file_batches.finalize import finalize_batch
from batches.file_batches.validate import validate_batch
from batches.models import Batch, File
from batches.models.file import parse_file_id
from batches.models.public_ids import parse_batch_id, public_id
from batches.payloads import open_store
from batches.publishing.publish import drain_publisher
from batches.submission.owner_quota import get_or_create_owner

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

ENDPOINT = "/v1/chat/completions"


def body(text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"model": "echo-1", "messages": [{"role": "user", "content": text}], **fields}


def line(custom_id: Any = "a", **members: Any) -> bytes:
    """One line without its end. A member that is given as None is left out."""
    whole = {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body()} | members
    return json.dumps({name: value for name, value in whole.items() if value is not None}).encode()


def make_file(rows: SimpleNamespace, content: bytes, **fields: Any) -> File:
    """Store a file of the owner of `rows`."""
    owner = get_or_create_owner(rows.relay_key.key_hash)
    defaults = {"purpose": "batch", "filename": "requests.jsonl", "created_at": Now()}
    file = File(owner=owner, size_bytes=len(content), **(defaults | fields))
    open_store().check()
    with open_store().open_file_writer(file.id) as writer:
        writer.write(content)
        writer.commit()
    file.save(force_insert=True)
    return file


def content_of(public_file_id: str) -> bytes:
    file_id = parse_file_id(public_file_id)
    assert file_id
    file = File.objects.get(id=file_id)
    return open_store().read_file(file.id, offset=0, length=file.size_bytes)


def lines_of(public_file_id: str) -> list[Any]:
    content = content_of(public_file_id)
    assert content.endswith(b"\n")
    return [json.loads(one) for one in content.split(b"\n")[:-1]]


def create(client: Client, rows: SimpleNamespace, content: bytes, **fields: Any) -> Batch:
    """Create a batch of a file with that content; it waits for its validation."""
    file = make_file(rows, content)
    response = post(client, rows, input_file_id=file.public_id, **fields)
    assert response.status_code == 200, response.content
    assert response.json()["status"] == "validating"
    return Batch.objects.get(id__in=[parse_batch_id(response.json()["id"])])


def post(client: Client, rows: SimpleNamespace, **fields: Any) -> Any:
    whole = {"endpoint": ENDPOINT, "completion_window": "24h"} | fields
    given = {name: value for name, value in whole.items() if value is not None}
    return client.post("/v1/batches", given, content_type="application/json", headers=rows.headers)


def validated(client: Client, rows: SimpleNamespace, *custom_ids: str, **fields: Any) -> Batch:
    """Create and validate a batch with these requests."""
    batch = create(client, rows, b"\n".join(line(one) for one in custom_ids or ("a",)), **fields)
    validate_batch(batch.id)
    drain_publisher()
    batch.refresh_from_db()
    return batch


def finalized(client: Client, rows: SimpleNamespace, batch: Batch) -> dict[str, Any]:
    """Finalize the batch; its object then."""
    finalize_batch(batch.id)
    return status(client, rows, batch)


def status(client: Client, rows: SimpleNamespace, batch: Batch) -> dict[str, Any]:
    response = client.get(path_of(batch), headers=rows.headers)
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def path_of(batch: Batch, rest: str = "") -> str:
    return f"/v1/batches/{public_id('openai', batch.id)}{rest}"
