"""Requests made up from the OpenAPI document, valid and invalid ones, at a running web process (schemathesis)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import hypothesis
import pytest
import requests
import schemathesis
from django.test import Client
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from batches.models.public_ids import public_id
from relaybatch.api_docs.document import document
from routing.models import User
from tests.support.calls import file_calls
from tests.support.calls.collections import CHAT, MESSAGES
from tests.support.calls.usage_calls import ADMIN_TOKEN
from tests.support.rows.submissions import submit
from tests.support.servers.web import web_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import SimpleNamespace

    from schemathesis import APIOperation, Case

    from tests.support.servers.web import Web

    Operation: TypeAlias = APIOperation[Any, Any, Any, Any]

pytestmark = pytest.mark.django_db(transaction=True)

CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance),
    *(response_headers_conformance, response_schema_conformance),
]
PLACEHOLDER = re.compile(r"{(batch_id|file_id)}")
REQUESTS_EACH, SECONDS_EACH = 12, 10
CSRF_TOKEN = "a" * 32
GROUPS = {
    "batches": "/v1/batches",
    "message batches": "/v1/messages/batches",
    "files": "/v1/files",
    "usage": ("/v1/usage", "/api/usage"),
    "others": ("/v1/models", "/api/auth", "/healthz", "/readyz", "/openapi.json"),
}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with web_process(tmp_path, RELAY_ADMIN_TOKEN=ADMIN_TOKEN) as process:
        yield process


@pytest.mark.parametrize("prefixes", GROUPS.values(), ids=GROUPS)
def test_no_request_gets_an_answer_that_the_document_does_not_know(
    web: Web, client: Client, rows: SimpleNamespace, prefixes: str | tuple[str, ...]
) -> None:
    ids = public_ids(client, rows)
    schema = schemathesis.openapi.from_dict(document())
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if operation.path.startswith(prefixes):
            headers = credentials(operation, rows)
            ask(operation, web.origin, headers)
            if placeholder := PLACEHOLDER.search(operation.path):
                for public in ids[operation.path.partition("/{")[0]]:
                    ask(operation, web.origin, headers, {placeholder[1]: public})
    assert web.call("GET", "/healthz").status == 200


def ask(
    operation: Operation,
    origin: str,
    headers: Mapping[str, str],
    path_parameters: dict[str, str] | None = None,
) -> None:
    session = requests.Session()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        if mode is GenerationMode.NEGATIVE and not can_be_wrong(operation):
            continue

        @hypothesis.settings(
            max_examples=REQUESTS_EACH,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(mode, path_parameters=path_parameters))
        def each(case: Case[Any]) -> None:
            case.call_and_validate(
                base_url=origin, session=session, headers=dict(headers), checks=CHECKS, timeout=SECONDS_EACH
            )

        each()


def can_be_wrong(operation: Operation) -> bool:
    return bool(operation.body or operation.query)


def credentials(operation: Operation, rows: SimpleNamespace) -> dict[str, str]:
    if operation.path.startswith("/api/usage"):
        return {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    if not operation.path.startswith("/api/auth"):
        return dict(rows.headers)
    client = Client()
    user, _ = User.objects.get_or_create(username="person", defaults={"project": rows.project})
    client.force_login(user)
    session = client.cookies["sessionid"].value
    return {"Cookie": f"sessionid={session}; csrftoken={CSRF_TOKEN}", "X-CSRFToken": CSRF_TOKEN}


def public_ids(client: Client, rows: SimpleNamespace) -> dict[str, list[str]]:
    """By the path of their collection."""
    chat, messages = (of.create(client, rows, "a", "b") for of in (CHAT, MESSAGES))
    relay = submit(rows)
    return {
        CHAT.path: [public_id(batch.dialect, batch.id) for batch in (chat, relay)],
        MESSAGES.path: [public_id("messages", messages.id)],
        file_calls.PATH: [file_calls.upload(client, rows).public_id],
    }
