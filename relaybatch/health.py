"""`/healthz`: this process answers. `/readyz`: what it needs is available too, and if not, which part is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from django.http import JsonResponse
from msgspec import Meta, Struct, to_builtins

from relaybatch.http.read_only import read_only
from relaybatch.readiness import OK, READINESS

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class Health(Struct, frozen=True, kw_only=True):
    status: Literal["ok"]


class Readiness(Struct, frozen=True, kw_only=True):
    """The state of each part that the process needs."""

    status: Literal["ready", "unavailable"]
    checks: Annotated[dict[str, str], Meta(description="By part: `ok`, or what is wrong with it.")]


@read_only
def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    return JsonResponse(to_builtins(Health(status="ok")))


@read_only
def readyz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """503 that names what is unavailable."""
    checks = READINESS.check()
    is_ready = all(result == OK for result in checks.values())
    readiness = Readiness(status="ready" if is_ready else "unavailable", checks=checks)
    return JsonResponse(to_builtins(readiness), status=200 if is_ready else 503)
