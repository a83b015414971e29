"""What every view of the API shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.views import APIView

from relaybatch.http.errors import MethodNotAllowed

if TYPE_CHECKING:
    from rest_framework.request import Request


# A wrong method is told to anybody, before any credential is asked for; OPTIONS is one of them. This is no docstring:
# the schema would show it for each view that has none.
class MethodCheckBeforeAuth(APIView):
    http_method_names = ["get", "post", "delete", "head"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if str(request.method) not in self.allowed_methods:
            raise MethodNotAllowed(f"{request.method} is not allowed here.")
        super().initial(request, *args, **kwargs)
