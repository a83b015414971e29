"""Django's database entry from a URL, without a further package: there is one engine, PostgreSQL."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

FORM = "DATABASE_URL: expected postgresql://user:password@host:port/name (or ?host=/socket/folder)"


def database_from_url(url: str) -> dict[str, Any]:
    """`?name=value` parts are libpq's connection options, `host` (a unix socket's folder) among them."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(FORM) from error
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(FORM)
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or options.pop("password", "")),
        "HOST": parts.hostname or options.pop("host", ""),
        "PORT": str(port or options.pop("port", "")),
        # Threads live as long as their process and keep their connection; a broken one is found before use.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        # `prepare_threshold` is for the statements of an item's path; Django's own are bound by the client.
        "OPTIONS": {"connect_timeout": 10, "prepare_threshold": 3, **options},
    }
