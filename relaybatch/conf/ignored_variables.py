"""Environment variables that libraries would read, and that Relaybatch ignores: they are removed at the start.

A shell, a container or a machine may set them for other projects. Each would override or extend `DATABASE_URL`,
`REDIS_URL` or the settings, in some processes and not in others.
"""

from __future__ import annotations

import os
import re

# Celery (its settings, and every option of its command line as CELERY_<COMMAND>_<OPTION>), kombu, and libpq:
# https://www.postgresql.org/docs/current/libpq-envars.html. PG_BIN is our own.
# urllib3 would write the secrets of every TLS connection into the file of the last.
IGNORED = re.compile(r"CELERY_.*|KOMBU_.*|PG[A-Z]+|PGCONNECT_TIMEOUT|SSLKEYLOGFILE")


def remove_ignored_variables() -> None:
    """Remove them from this process, for libraries in C too, and so from the processes that it starts."""
    for name in [name for name in os.environ if IGNORED.fullmatch(name)]:
        del os.environ[name]
    os.environ["DJANGO_SETTINGS_MODULE"] = "relaybatch.settings"
