"""Django's database entry from a URL, without a further package, and what each session asks of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

FORM = "DATABASE_URL: expected postgresql://user:password@host:port/name (or ?host=/socket/folder)"
# A server whose machine went away without a word is noticed within half a minute, not after TCP's two hours.
_NOTICE_A_DEAD_SERVER = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
# The other way round: rows that a process of ours has locked are free again when it hangs or its machine is gone.
# Not by the connection's `options`, which poolers refuse.
_LET_GO_OF_LOCKS = """
SELECT set_config('idle_in_transaction_session_timeout', %(lost)s, false),
    set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
    set_config('tcp_keepalives_count', '4', false)
"""


def database_from_url(url: str) -> dict[str, Any]:
    """`?name=value` parts are libpq's connection options, `host` (a unix socket's folder) among them."""
    try:
        parts = urlsplit(url)
        port = parts.port
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        make_conninfo("", **options)
    except (ValueError, ProgrammingError) as error:
        raise ImproperlyConfigured(FORM) from error
    if not url.startswith(("postgres://", "postgresql://")) or not parts.path.lstrip("/"):
        raise ImproperlyConfigured(FORM)
    return {
        "ENGINE": "relaybatch.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or options.pop("password", "")),
        "HOST": parts.hostname or options.pop("host", ""),
        "PORT": str(port or options.pop("port", "")),
        # Kept while it is used (relaybatch/spare_connections.py), however old; a broken one is found before use.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        # `prepare_threshold` is for the statements of an item's path; Django's own are bound by the client.
        "OPTIONS": {"connect_timeout": 10, "prepare_threshold": 3, **_NOTICE_A_DEAD_SERVER, **options},
    }


def let_go_of_locks(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """For each new session: what holds a transaction open and says nothing is ended as a lost worker is."""
    from django.conf import settings

    with connection.cursor() as cursor:
        cursor.execute(_LET_GO_OF_LOCKS, {"lost": f"{settings.RELAY_WORKER_LOST_S}s"})
