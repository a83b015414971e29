"""Environment variables that belong to this deployment and may hold its secrets.

Whoever edits the catalog chooses the host that a host key is sent to: a host key must not name such a variable.
"""

from __future__ import annotations

from relaybatch.conf.env import variables_read

# Of the libraries for stores, databases and brokers, which read many variables by themselves; and our own.
_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "PG", "RELAY_", "DJANGO_", "CELERY_")
# Read by the web server's configuration and by `make run`, but not by the settings.
_READ_BY_OTHER_PROCESSES = frozenset(
    {"PORT", "WEB_CONCURRENCY", "RELAYBATCH_HOME", "REDIS_SERVER", "ECHO_DELAY_MS"}
)


def is_reserved(name: str) -> bool:
    """Whether the variable is reserved, in whatever case, or names the file of a reserved one (`…_FILE`)."""
    upper = name.upper()
    ours = _READ_BY_OTHER_PROCESSES | variables_read()
    return upper.startswith(_PREFIXES) or upper in ours or upper.removesuffix("_FILE") in ours
