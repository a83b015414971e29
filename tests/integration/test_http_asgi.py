"""The same surface under an ASGI server."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from batches.models import Batch
from tests.catalog import make_catalog
from tests.submissions import chat_body

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_submission_under_asgi_is_accepted_and_can_be_read() -> None:
    rows = make_catalog("http://127.0.0.1:9")
    body = b'{"shape":"openai","requests":[' + chat_body() + b"]}"
    client = AsyncClient()
    created = async_to_sync(client.post)("/v1/batches", body, content_type="text/plain", headers=rows.headers)
    assert created.status_code == 202
    batch = Batch.objects.get()
    status = async_to_sync(client.get)(f"/v1/batches/{batch.id}/", headers=rows.headers)
    assert json.loads(status.content)["ID"] == str(batch.id)
