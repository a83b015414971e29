"""Routes that anybody may read, and nobody write."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from django.views.decorators.csrf import csrf_exempt

from relaybatch.http.error_responses import error_response
from relaybatch.http.errors import MethodNotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    View = Callable[[HttpRequest], HttpResponseBase]

READ_METHODS = ("GET", "HEAD")


def read_only(view: View) -> View:
    """The view for GET and HEAD; a 405 in the API's form for any other method."""

    @functools.wraps(view)
    def read_or_reject(request: HttpRequest) -> HttpResponseBase:
        if request.method in READ_METHODS:
            return view(request)
        response = error_response(request, MethodNotAllowed(f"{request.method} is not allowed here."))
        response["Allow"] = ", ".join(READ_METHODS)
        return response

    return csrf_exempt(read_or_reject)
