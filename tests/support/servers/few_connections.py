"""A database account with a connection limit, as on a server with few connections."""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING

from django.db import connection
from psycopg.sql import SQL, Identifier

from tests.support.servers.deployment import deployment_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

# Only what the service does: a superuser's connections are not counted.
_MAY = SQL("GRANT pg_read_all_data, pg_write_all_data TO {}")


@contextlib.contextmanager
def limited_account(connections: int) -> Iterator[str]:
    """Yield its `DATABASE_URL`. Processes that use it must end before the block does."""
    name, password = f"few_{secrets.token_hex(4)}", secrets.token_hex(8)
    role = Identifier(name)
    with connection.cursor() as cursor:
        cursor.execute(
            SQL("CREATE ROLE {} LOGIN PASSWORD {} CONNECTION LIMIT {}").format(role, password, connections)
        )
        cursor.execute(_MAY.format(role))
    owner = connection.settings_dict
    url = deployment_environment()["DATABASE_URL"]
    try:
        yield url.replace(f"//{owner['USER']}:{owner['PASSWORD']}@", f"//{name}:{password}@")
    finally:
        with connection.cursor() as cursor:
            cursor.execute(SQL("DROP ROLE {}").format(role))


def count_sessions(url: str) -> int:
    """Number of the account's current sessions."""
    with connection.cursor() as cursor:
        name = url.split("//")[1].split(":")[0]
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = %s", [name])
        return int(cursor.fetchone()[0])
