"""Environment variables that are this deployment's own, and may hold its secrets.

Who may edit the catalog chooses the host that a host key is sent to: one that named such a variable would give it away.
"""

from __future__ import annotations

from relaybatch.conf.env import variables_read

# Of the libraries that reach stores, databases and brokers (they read many variables by themselves), and our own.
_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "PG", "RELAY_", "DJANGO_", "CELERY_")
# Read by the web server's own configuration and by `make run`: a worker's settings don't know them.
_READ_BY_OTHER_PROCESSES = frozenset(
    {"PORT", "WEB_CONCURRENCY", "RELAYBATCH_HOME", "REDIS_SERVER", "ECHO_DELAY_MS"}
)


def is_reserved(name: str) -> bool:
    """In whatever case, and also of the form that names a file of the value."""
    upper = name.upper()
    ours = _READ_BY_OTHER_PROCESSES | variables_read()
    return upper.startswith(_PREFIXES) or upper in ours or upper.removesuffix("_FILE") in ours
