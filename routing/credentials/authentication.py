"""Read the caller's credential from a request: `Authorization: Bearer` or `x-api-key`, on every route.

Anthropic's SDK sends `x-api-key` (https://docs.anthropic.com/en/api/overview), OpenAI's the other
(https://platform.openai.com/docs/api-reference/authentication); a client that sends both must send the same value.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication

from relaybatch.http.errors import Unauthenticated
from routing.credentials.credential import Credential, authenticate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request


class CredentialAuthentication(BaseAuthentication):
    """Sets `request.user` and `request.auth` to the Credential. A request without one is rejected, not anonymous."""

    def authenticate(self, request: Request) -> tuple[Credential, Credential]:
        credential = authenticate(presented_value(request.headers))
        return credential, credential

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 -- DRF's signature
        return "Bearer"


def presented_value(headers: Mapping[str, str]) -> str:
    """The credential's value. Raises Unauthenticated for none, for two different ones, and for another scheme."""
    values = [
        value
        for value in (_bearer(headers.get("authorization", "")), headers.get("x-api-key", "").strip())
        if value
    ]
    if not values:
        raise Unauthenticated(
            "no credential: send a relay key or a token as Authorization: Bearer or as x-api-key",
            code="missing_credential",
        )
    if not hmac.compare_digest(values[0].encode(), values[-1].encode()):
        raise Unauthenticated(
            "Authorization and x-api-key are different credentials: send one", code="invalid_credential"
        )
    return values[0]


def _bearer(header: str) -> str:
    scheme, _, value = header.strip().partition(" ")
    if scheme and scheme.lower() != "bearer":
        raise Unauthenticated("Authorization: expected the scheme Bearer", code="invalid_credential")
    return value.strip()
