"""Authenticate operators, who may read everybody's usage: staff with a session, or the holder of RELAY_ADMIN_TOKEN."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.authentication import BaseAuthentication

from relaybatch.http.errors import Forbidden, Unauthenticated

if TYPE_CHECKING:
    from rest_framework.request import Request


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, in place of DRF's user. `name` is empty for the admin token."""

    name: str = ""

    @property
    def is_authenticated(self) -> bool:
        return True


class OperatorAuthentication(BaseAuthentication):
    """Answer 401 without a valid credential, 403 for the session of a user who is not staff."""

    def authenticate(self, request: Request) -> tuple[Operator, None]:
        if "authorization" in request.headers:
            return self._authenticate_token(request.headers["authorization"]), None
        return self._authenticate_session(request), None

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        return "Bearer"

    def _authenticate_token(self, header: str) -> Operator:
        scheme, _, token = header.partition(" ")
        expected = settings.RELAY_ADMIN_TOKEN.encode()
        given = token.strip().encode(errors="replace")
        if not (expected and scheme.lower() == "bearer" and hmac.compare_digest(given, expected)):
            raise Unauthenticated("the admin token is wrong")
        return Operator()

    def _authenticate_session(self, request: Request) -> Operator:
        user = request._request.user
        if not user.is_authenticated:
            raise Unauthenticated("an admin token or a staff session is needed", code="missing_credential")
        if not (user.is_active and user.is_staff):
            raise Forbidden("only staff may read everybody's usage")
        return Operator(name=user.get_username())
