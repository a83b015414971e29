"""`/healthz`: this process answers. `/readyz`: what it needs answers too, and if not, which part does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt

from relaybatch.http import errors
from relaybatch.http.error_responses import error_response
from relaybatch.readiness import OK, READINESS

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@csrf_exempt
def healthz(request: HttpRequest) -> HttpResponse:
    return _reject_write_method(request) or JsonResponse({"status": "ok"})


@csrf_exempt
def readyz(request: HttpRequest) -> HttpResponse:
    """503 with a word for each part that is away."""
    if refusal := _reject_write_method(request):
        return refusal
    found = READINESS.check()
    ready = all(word == OK for word in found.values())
    body = {"status": "ready" if ready else "unavailable", "checks": found}
    return JsonResponse(body, status=200 if ready else 503)


def _reject_write_method(request: HttpRequest) -> HttpResponse | None:
    if request.method in ("GET", "HEAD"):
        return None
    response = error_response(request, errors.MethodNotAllowed(f"{request.method} is not allowed here."))
    response["Allow"] = "GET, HEAD"
    return response
