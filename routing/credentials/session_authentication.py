"""Authentication by Django's session, for the few routes that are for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import UnreadablePostError
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import PermissionDenied

from relaybatch.http.body.body_limits import MAX_SESSION_BODY_BYTES
from relaybatch.http.errors import Forbidden, InvalidRequest, LengthRequired, TooLarge, Unauthenticated

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser
    from django.http import HttpRequest
    from rest_framework.request import Request


class SessionLoginAuthentication(SessionAuthentication):
    """401 without a session, whatever other credential is sent; 403 without the CSRF token of the session."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, None]:
        user = request._request.user
        if not (user.is_authenticated and user.is_active):
            raise Unauthenticated("log in first: this takes a session", code="missing_credential")
        # Limit the body before the CSRF check, which parses forms of any size to find its token.
        read_body(request._request)
        try:
            # Django's own request: DRF's would parse the JSON body to find a form's token.
            self.enforce_csrf(request._request)  # type: ignore[arg-type]
        except PermissionDenied as error:
            raise Forbidden(
                "the CSRF token is missing or wrong: send the cookie's as X-CSRFToken", code="csrf_failed"
            ) from error
        return user, None

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 -- DRF's signature
        return "Bearer"


def read_body(request: HttpRequest) -> bytes:
    """Read the body, which Django keeps for later calls. Raises LengthRequired, TooLarge, InvalidRequest."""
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
        raise LengthRequired("send a Content-Length")
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MAX_SESSION_BODY_BYTES:
        raise TooLarge(f"the body is larger than {MAX_SESSION_BODY_BYTES} bytes")
    try:
        return request.body
    except UnreadablePostError as error:
        raise InvalidRequest("the body is incomplete", code="incomplete_body") from error
