"""The origin of absolute links to the service.

It must be trusted: a client that follows a link sends its key along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import DisallowedHost

from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from django.http import HttpRequest


def public_origin(request: HttpRequest) -> str:
    """Return PUBLIC_URL, else the request's own origin. Raises InvalidRequest for a host not in ALLOWED_HOSTS."""
    if settings.PUBLIC_URL:
        return settings.PUBLIC_URL
    try:
        return f"{request.scheme}://{request.get_host()}"
    except DisallowedHost:
        raise InvalidRequest(
            "No link to the results can be given under this host name: the operator has to set PUBLIC_URL, "
            "or to add the name to ALLOWED_HOSTS.",
            code="unknown_host",
            param="Host",
        ) from None
