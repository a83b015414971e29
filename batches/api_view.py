"""What the viewsets of batches and of files share."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.http import HttpResponse

from batches.dialects.dialect_response import JSON_CONTENT_TYPE
from batches.submission.idempotency import ReplayedResponse
from relaybatch.http.api_view import MethodCheckBeforeAuth

if TYPE_CHECKING:
    from rest_framework.response import Response

    from routing.credentials.credential import Credential


class CreatingView(MethodCheckBeforeAuth):
    """A view whose creates may come again, and get the response of the first time then."""

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, ReplayedResponse):
            return HttpResponse(exc.body, status=exc.status, content_type=JSON_CONTENT_TYPE)  # type: ignore[return-value]
        return super().handle_exception(exc)

    @property
    def credential(self) -> Credential:
        return cast("Credential", self.request.auth)
