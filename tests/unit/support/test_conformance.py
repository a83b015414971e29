"""The check that every answer of the tests goes through notices what the document does not know."""

from __future__ import annotations

import json
from typing import Any

import pytest

from batches.openapi.examples import CHAT_BATCH, RESULT_LINES
from tests.support.run.conformance import assert_conforms

PATH = "/v1/batches/batch_1"


def conforms(status: int, body: Any, *, method: str = "GET", path: str = PATH, kind: str = "json") -> None:
    headers = {"request-id": "req_1", "content-type": f"application/{kind}"}
    assert_conforms(
        method, path, status, headers, body if isinstance(body, bytes) else json.dumps(body).encode()
    )


def test_what_is_documented_passes() -> None:
    conforms(200, CHAT_BATCH)
    conforms(200, RESULT_LINES.encode(), path=f"{PATH}/results", kind="x-jsonl")


@pytest.mark.parametrize(
    "changed",
    [
        CHAT_BATCH | {"extra": 1},
        CHAT_BATCH | {"status": "done"},
        CHAT_BATCH | {"created_at": None},
        {name: value for name, value in CHAT_BATCH.items() if name != "usage"},
    ],
)
def test_another_body_does_not(changed: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        conforms(200, changed)


@pytest.mark.parametrize(
    ("status", "method", "path", "kind"),
    [
        (202, "GET", PATH, "json"),
        (200, "PUT", PATH, "json"),
        (200, "GET", "/v1/nothing", "json"),
        (200, "GET", PATH, "x-jsonl"),
    ],
)
def test_nor_does_another_status_method_path_or_type(status: int, method: str, path: str, kind: str) -> None:
    with pytest.raises(AssertionError):
        conforms(status, CHAT_BATCH, method=method, path=path, kind=kind)


def test_nor_does_a_line_that_is_no_result() -> None:
    with pytest.raises(AssertionError):
        conforms(200, b'{"custom_id":"a"}\n', path=f"{PATH}/results", kind="x-jsonl")
