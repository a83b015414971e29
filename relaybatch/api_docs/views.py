"""`/openapi.json`, and `/docs`: a page that shows it and sends requests from the reader's browser."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.shortcuts import render
from msgspec import json

from relaybatch.api_docs.document import document
from relaybatch.http.read_only import read_only

if TYPE_CHECKING:
    from django.http import HttpRequest

# All of the page comes from this service: no other host learns who reads it. Its styles are partly written into
# elements by Swagger UI.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@functools.cache
def _encoded_document() -> bytes:
    return json.encode(document())


@read_only
def openapi_json(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    return HttpResponse(_encoded_document(), content_type="application/json")


@read_only
def docs_page(request: HttpRequest) -> HttpResponse:
    response = render(request, "relaybatch/docs.html")
    response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response
