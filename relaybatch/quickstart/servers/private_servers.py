"""A private PostgreSQL and a private Redis in one directory, from the binaries of two Python packages.

The packages' own start functions are not used: they create system users, widen permissions and leave servers running.
`PG_BIN` (a directory) and `REDIS_SERVER` (a program) select other binaries.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.postgres_location import delete_home_data
from relaybatch.quickstart.servers.private_postgres import PrivatePostgres
from relaybatch.quickstart.servers.private_redis import PrivateRedis

__all__ = ["PrivatePostgres", "PrivateRedis", "Servers", "delete_home_data", "locked_home", "private_servers"]


@dataclass(frozen=True, slots=True)
class Servers:
    postgres: PrivatePostgres
    redis: PrivateRedis

    @property
    def database_url(self) -> str:
        return self.postgres.url

    @property
    def redis_url(self) -> str:
        return self.redis.url


@contextlib.contextmanager
def private_servers(home: Path, *, durable: bool) -> Iterator[Servers]:
    """Start both servers and wait until they are ready. They stop at the end, and soon after this process is killed.

    `durable=False`, for tests: a crash of the machine may lose data. Raises QuickstartError.
    """
    with locked_home(home):
        servers = Servers(postgres=PrivatePostgres(home, durable=durable), redis=PrivateRedis(home))
        try:
            servers.postgres.start()
            servers.redis.start()
            yield servers
        finally:
            servers.redis.stop()
            servers.postgres.stop()


@contextlib.contextmanager
def locked_home(home: Path) -> Iterator[None]:
    """Create the directory and lock it. The lock is released with the process, however it ends."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as problem:
        raise QuickstartError(
            f"{home} cannot be written ({problem.strerror}): set RELAYBATCH_HOME to a directory of yours"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise QuickstartError(
            f"{home} is in use by another run: stop it, or set RELAYBATCH_HOME and PORT to others"
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)
