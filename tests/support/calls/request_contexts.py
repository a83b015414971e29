"""What a request asks of a dialect, without the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.test import RequestFactory

from batches.dialects.request_context import RequestContext
from relaybatch.http.query_params import QueryParams

if TYPE_CHECKING:
    from collections.abc import Mapping

ORIGIN = "https://batches.test"


def request_context(query: str = "", *, headers: Mapping[str, str] | None = None) -> RequestContext:
    request = RequestFactory().get(f"/{query}")
    return RequestContext(
        parameters=QueryParams(request, known=None), headers=dict(headers or {}), origin=lambda: ORIGIN
    )
