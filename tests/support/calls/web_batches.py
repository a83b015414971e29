"""Batches submitted to, and read from, a real web process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batches.models import Batch
from tests.support.rows.submissions import chat_body

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.servers.web import Web


def submit_over(web: Web, catalog: SimpleNamespace, *, items: int) -> Batch:
    bodies = b",".join(chat_body(f"item {number}") for number in range(items))
    reply = web.call(
        "POST",
        "/v1/batches",
        headers={**catalog.headers, "Content-Type": "application/json"},
        body=b'{"shape":"openai","requests":[' + bodies + b"]}",
    )
    assert reply.status == 202, reply.body
    return Batch.objects.get(id=reply.json["id"])


def readable_items(web: Web, catalog: SimpleNamespace, batch: Batch) -> int:
    """Count the results that are complete and have an answer."""
    reply = web.call("GET", f"/v1/batches/{batch.id}/results?include=error_code", headers=catalog.headers)
    assert reply.status == 200, reply.body
    return sum(row["state"] == "completed" and row.get("error_code") is None for row in reply.json["results"])
