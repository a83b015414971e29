"""One PostgreSQL and one Redis for a pytest run, whatever the number of workers, and the variables that settings need.

`DATABASE_URL` (a superuser's) and `REDIS_URL`, when set, name servers to use instead.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from relaybatch.quickstart.servers.private_servers import (
    PrivatePostgres,
    PrivateRedis,
    delete_home_data,
    locked_home,
)

FIXED = {
    "SECRET_KEY": "for-tests-only-0123456789-0123456789-0123456789-abcdef",
    "RELAY_MASTER_KEY": base64.b64encode(bytes(range(32))).decode(),
    "ALLOWED_HOSTS": "testserver,localhost,127.0.0.1",
    "LOG_FORMAT": "text",
}
DEPLOYMENT_VARIABLES = (
    "RELAY_",
    "DATABASE_URL_FILE",
    "REDIS_URL_FILE",
    "SECRET_KEY_FILE",
    "PUBLIC_URL",
    "HTTPS_ONLY",
    "CSRF_TRUSTED_ORIGINS",
    "LOG_LEVEL",
)
"""Variables of the developer's environment that must not influence the tests."""


class RunEnvironment:
    """Call `prepare` in each process of the run; the first one starts the servers, the others inherit the addresses."""

    def __init__(self) -> None:
        self._closing = contextlib.ExitStack()

    @classmethod
    def prepare(cls) -> RunEnvironment:
        run = cls()
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        if not worker:
            run._start()
        else:
            os.environ["REDIS_URL"] = own_redis_database(os.environ["REDIS_URL"], worker=worker)
            payloads = Path(os.environ["RELAY_BATCH_PAYLOAD_DIR"]) / worker
            os.environ["RELAY_BATCH_PAYLOAD_DIR"] = str(payloads)
        return run

    def close(self) -> None:
        self._closing.close()

    def _start(self) -> None:
        home = Path(tempfile.mkdtemp(prefix="relaybatch-tests-"))
        self._closing.callback(shutil.rmtree, home, ignore_errors=True)
        self._closing.callback(delete_home_data, home)
        self._closing.enter_context(locked_home(home))
        for name in [name for name in os.environ if name.startswith(DEPLOYMENT_VARIABLES)]:
            del os.environ[name]
        os.environ.update(FIXED, RELAY_BATCH_PAYLOAD_DIR=str(home / "payloads"))
        if not os.environ.get("DATABASE_URL"):
            postgres = PrivatePostgres(home, durable=False)
            self._closing.callback(postgres.stop)
            postgres.start()
            os.environ["DATABASE_URL"] = postgres.url
        if not os.environ.get("REDIS_URL"):
            redis = PrivateRedis(home)
            self._closing.callback(redis.stop)
            redis.start()
            os.environ["REDIS_URL"] = redis.url


def own_redis_database(url: str, *, worker: str) -> str:
    """`gw0` uses the database after the run's own, `gw1` the next, and so on."""
    parts = urlsplit(url)
    number = int(parts.path.strip("/") or 0) + 1 + int(worker.removeprefix("gw"))
    return urlunsplit(parts._replace(path=f"/{number}"))
