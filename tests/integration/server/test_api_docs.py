"""`/openapi.json`, `/docs` and the redirects of `/` and `/admin`, which need no credential."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from relaybatch.api_docs.document import document

if TYPE_CHECKING:
    from django.test import Client

    from tests.support.servers.web import Web

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_document_is_served_to_anybody(client: Client) -> None:
    response = client.get("/openapi.json")
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")
    assert json.loads(response.content) == document()


@pytest.mark.parametrize(("path", "target"), [("/", "/docs"), ("/admin", "/admin/")])
def test_short_paths_lead_to_the_pages(client: Client, path: str, target: str) -> None:
    response = client.get(path)
    assert (response.status_code, response["Location"]) == (302, target)


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/docs/"])
def test_they_can_be_asked_for_their_headers(client: Client, path: str) -> None:
    response = client.head(path)
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/admin"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nobody_writes_there(client: Client, path: str, method: str) -> None:
    response = client.generic(method, path)
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
    assert json.loads(response.content)["error"]["code"] == "method_not_allowed"


def test_the_page_takes_everything_from_this_service(web: Web) -> None:
    page = web.call("GET", "/docs")
    assert page.status == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<script>" not in page.body.decode()
    links = re.findall(r'(?:href|src)="([^"]+)"', page.body.decode())
    assert all(link.startswith("/") for link in links)
    assert {web.call("GET", link).status for link in links} == {200}
