"""Health endpoints. `/healthz`: this process responds. `/readyz`: so do the services that it needs."""

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
    """200 if all checks are `ok`, else 503; in both cases with the result of each check."""
    if rejection := _reject_write_method(request):
        return rejection
    checks = READINESS.check()
    is_ready = all(result == OK for result in checks.values())
    body = {"status": "ready" if is_ready else "unavailable", "checks": checks}
    return JsonResponse(body, status=200 if is_ready else 503)


def _reject_write_method(request: HttpRequest) -> HttpResponse | None:
    if request.method in ("GET", "HEAD"):
        return None
    response = error_response(request, errors.MethodNotAllowed(f"{request.method} is not allowed here."))
    response["Allow"] = "GET, HEAD"
    return response
