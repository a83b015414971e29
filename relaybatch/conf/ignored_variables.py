"""What libraries read from the environment beside our own variables, which say all of it: left out, whoever set it.

A shell, a container or a machine may hold them for other projects. Each would beat or complete `DATABASE_URL`,
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
    """Also for libraries in C, and for the processes that this one starts."""
    for name in [name for name in os.environ if IGNORED.fullmatch(name)]:
        del os.environ[name]
    os.environ["DJANGO_SETTINGS_MODULE"] = "relaybatch.settings"
