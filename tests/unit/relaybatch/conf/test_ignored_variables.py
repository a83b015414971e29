"""Which environment variables our processes keep."""

from __future__ import annotations

import json
import os
import subprocess
import sys

KEPT = {
    "AWS_ACCESS_KEY_ID": "a",
    "AZURE_STORAGE_ACCOUNT_NAME": "b",
    "DJANGO_SUPERUSER_PASSWORD": "c",
    "GOOGLE_APPLICATION_CREDENTIALS": "d",
    "GUNICORN_CMD_ARGS": "e",
    "PGVECTOR_API_KEY": "f",
    "PG_BIN": "g",
    "REDIS_SERVER": "h",
    "WEB_CONCURRENCY": "1",
}
LEFT_OUT = {
    "CELERY_BROKER_URL": "i",
    "KOMBU_LOG_DEBUG": "1",
    "PGHOSTADDR": "j",
    "PGCONNECT_TIMEOUT": "k",
    "SSLKEYLOGFILE": "l",
}


def test_only_what_would_change_broker_database_or_settings_is_left_out() -> None:
    given = KEPT | LEFT_OUT | {"DJANGO_SETTINGS_MODULE": "other.settings"}
    code = "import json, os, relaybatch; json.dump(dict(os.environ), __import__('sys').stdout)"
    environment = {"PATH": os.environ["PATH"]} | given
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    kept = json.loads(done.stdout)
    assert {name: kept[name] for name in given if name in kept} == KEPT | {
        "DJANGO_SETTINGS_MODULE": "relaybatch.settings"
    }
