"""The base class of every API view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.views import APIView

from relaybatch.http.errors import MethodNotAllowed

if TYPE_CHECKING:
    from rest_framework.request import Request


class MethodCheckBeforeAuth(APIView):
    """A method that the route does not serve is a 405 for everybody, before any credential is checked; OPTIONS too."""

    http_method_names = ["get", "post", "delete", "head"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if str(request.method) not in self.allowed_methods:
            raise MethodNotAllowed(f"{request.method} is not allowed here.")
        super().initial(request, *args, **kwargs)
