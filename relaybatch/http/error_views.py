"""Django's error handlers: errors outside of any API view, and paths that no route serves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt

from relaybatch.http import errors
from relaybatch.http.error_responses import error_response, route_not_found, unexpected_error

if TYPE_CHECKING:
    from django.http import HttpRequest

# HTML pages; every other path answers in JSON.
HTML_PREFIXES = ("/admin/", "/static/")
PAGE = """<!doctype html>
<html lang="en"><head><title>Unavailable (503)</title></head><body><h1>Unavailable (503)</h1><p>{}</p></body></html>
"""


@csrf_exempt
def unknown_route(request: HttpRequest) -> HttpResponse:
    """404 for every path without a route. No credential is needed, since the response reveals nothing."""
    return error_response(request, route_not_found())


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith(HTML_PREFIXES):
        return defaults.bad_request(request, exception)
    error = errors.InvalidRequest(
        "The request's host or headers are not acceptable here.", code="bad_request"
    )
    return error_response(request, error)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith(HTML_PREFIXES):
        return defaults.permission_denied(request, exception)
    return error_response(request, errors.Forbidden("This request may not do that."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith(HTML_PREFIXES):
        return defaults.page_not_found(request, exception)
    return unknown_route(request)


def server_error(request: HttpRequest) -> HttpResponse:
    """500, or 503 while the database is unavailable. Django calls it inside its `except` block."""
    error = unexpected_error(sys.exception())
    if not request.path_info.startswith(HTML_PREFIXES):
        return error_response(request, error)
    if not isinstance(error, errors.Unavailable):
        return defaults.server_error(request)
    headers = {"Retry-After": str(error.retry_after_seconds)}
    return HttpResponse(PAGE.format(error.message), status=error.http_status, headers=headers)
