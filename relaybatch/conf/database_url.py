"""Parse DATABASE_URL into Django's database entry, and configure each new PostgreSQL session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import IsolationLevel, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, Ping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.backends.base.base import BaseDatabaseWrapper

EXPECTED_ADDRESS = (
    "DATABASE_URL: expected postgresql://user:password@host:port/name (or ?host=/socket/folder)"
)
EXPECTED_OPTIONS = "DATABASE_URL: expected libpq's options after the ?, each with a value of its kind"
# A server whose machine disappeared is noticed within half a minute, not after TCP's default of two hours.
_TCP_KEEPALIVE_OPTIONS = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
# What our statements and the parsers of their results need. A database or a role may have other defaults, for others.
# Set by statement and not by the connection's `options`, which poolers reject.
_SESSION_SETTINGS = {
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "default_transaction_isolation": "read committed",
    # The server notices a client whose machine disappeared.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
}
_INTEGER_OPTIONS = {"connect_timeout", "keepalives", *_TCP_KEEPALIVE_OPTIONS}
_MAX_NAME_BYTES = 63
_MAX_PORT = 65_535
_DEFAULT_SEARCH_PATH = '"$user", public'
_SETS_SEARCH_PATH = re.compile(r"(-c\s*|--)search[_-]path\s*=", re.IGNORECASE)


def database_from_url(url: str) -> dict[str, Any]:
    """Return Django's entry for the URL. Nothing is connected here.

    The URL is parsed as by libpq (https://www.postgresql.org/docs/current/libpq-connect.html), but the database's name
    is required. Raises ImproperlyConfigured for an address that could never connect.
    """
    try:
        options = conninfo_to_dict(_escape(url))
        _require_valid_address(url, options)
    except (ValueError, ProgrammingError):
        raise ImproperlyConfigured(EXPECTED_ADDRESS) from None  # libpq's message quotes parts of the address
    if not _are_valid_options(options):
        raise ImproperlyConfigured(EXPECTED_OPTIONS)
    return {
        "ENGINE": "relaybatch.db.postgresql",
        "NAME": options.pop("dbname"),
        "USER": options.pop("user", ""),
        "PASSWORD": options.pop("password", ""),
        "HOST": options.pop("host", ""),
        "PORT": options.pop("port", ""),
        # The pool (relaybatch/db/connection.py) decides how long it is kept; a broken one is detected before use.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        # `prepare_threshold` is for the statements of an item's path (relaybatch/db/pipeline.py). Parameters of
        # Django's own statements are bound by the client.
        "OPTIONS": {
            "connect_timeout": 10,
            "prepare_threshold": 3,
            # Sent in the BEGIN itself, so that it holds where a pooler gives each transaction another session.
            "isolation_level": IsolationLevel.READ_COMMITTED,
            **_TCP_KEEPALIVE_OPTIONS,
            **options,
        },
    }


def configure_session(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Set what a new session needs, in one statement. Receiver of Django's `connection_created`.

    PostgreSQL ends a session that is idle in a transaction for as long as a worker may be silent: rows that a process
    of ours has locked are free again when it hangs or its machine is gone.
    """
    from django.conf import settings

    session_settings = {
        **_SESSION_SETTINGS,
        "idle_in_transaction_session_timeout": f"{settings.RELAY_WORKER_LOST_S}s",
    }
    if not _SETS_SEARCH_PATH.search(connection.settings_dict["OPTIONS"].get("options", "")):
        session_settings["search_path"] = _DEFAULT_SEARCH_PATH
    calls = ", ".join(["set_config(%s, %s, false)"] * len(session_settings))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {calls}", [part for pair in session_settings.items() for part in pair])


def _escape(url: str) -> str:
    """Escape what libpq rejects or reads otherwise: `@` in a password, a `%` that escapes nothing, `+` for a space."""
    scheme, _, rest = re.sub("%(?![0-9A-Fa-f]{2})", "%25", url).partition("://")
    address, mark, query = rest.partition("?")
    authority, slash, name = address.partition("/")
    user, at, hosts = authority.rpartition("@")
    user, query = user.replace("@", "%40"), query.replace("+", "%20")
    return f"{scheme}://{user}{at}{hosts}{slash}{name}{mark}{query}"


def _require_valid_address(url: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError unless the URL has a known scheme, a database name that fits, and valid ports."""
    is_whole = url.startswith(("postgres://", "postgresql://")) and options.get("dbname")
    if not is_whole or len(options["dbname"].encode()) > _MAX_NAME_BYTES:
        raise ValueError("no address of a database")
    ports = [port.strip() for port in options.get("port", "").split(",") if port]
    if not all(re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) <= _MAX_PORT for port in ports):
        raise ValueError("no port")


def _are_valid_options(options: Mapping[str, Any]) -> bool:
    """Whether libpq accepts the options. It checks them before it looks for the socket, whose folder does not exist."""
    if not all(re.fullmatch(r"-?\d{1,9}", options.get(name, "0"), re.ASCII) for name in _INTEGER_OPTIONS):
        return False
    count = max(len(str(options.get(name, "")).split(",")) for name in ("host", "hostaddr"))
    unreachable = {
        "host": ",".join(["/nowhere/at/all"] * count),
        "hostaddr": "",
        "passfile": "/nowhere/at/all",
    }
    conninfo = make_conninfo("", **{**options, **unreachable, "password": ""})
    return PGconn.ping(conninfo.encode()) != Ping.NO_ATTEMPT
