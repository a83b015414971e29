"""Environment variables that hold this deployment's own secrets.

Who may edit the catalog chooses the host that a host key is sent to: one that named such a variable would give it away.
"""

from __future__ import annotations

_OURS = frozenset(
    {
        *("SECRET_KEY", "RELAY_MASTER_KEY", "RELAY_ADMIN_TOKEN"),
        *("DATABASE_URL", "PGPASSWORD", "REDIS_URL", "RELAY_BATCH_PAYLOAD_URL"),
        # What the payload store's client reads by itself.
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_CLIENT_SECRET"),
        *("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_APPLICATION_CREDENTIALS"),
    }
)


def is_own_name(name: str) -> bool:
    """Also of the form that names a file of the secret."""
    return name.upper().removesuffix("_FILE") in _OURS
