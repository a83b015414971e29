"""`python -m relaybatch.quickstart.demo.prepare_database CATALOG`: tables, catalog, admin and relay key of a demo.

One process for all of it, since starting Django is what takes long; all of it is harmless when it is there already.
The key that works is the only line on stdout. No other module of the quickstart imports Django.
"""

from __future__ import annotations

import io
import json
import os
import sys

import django
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError
from django.utils import timezone

from relaybatch.quickstart.demo.names import ADMIN_NAME, ADMIN_PASSWORD_VARIABLE, RELAY_KEY_VARIABLE

SERVICE_ACCOUNT = "demo"


def main() -> None:
    try:
        django.setup()
        call_command("migrate", interactive=False, verbosity=0)
        call_command("apply", sys.argv[1], stdout=sys.stderr)
        _create_admin(os.environ[ADMIN_PASSWORD_VARIABLE])
        print(_valid_relay_key(os.environ.get(RELAY_KEY_VARIABLE, "")))
    except (CommandError, DatabaseError, ImproperlyConfigured) as problem:
        sys.exit(str(problem))


def _create_admin(password: str) -> None:
    """One that is there keeps its password: a person may have changed it."""
    users = get_user_model()
    if not users.objects.filter(username=ADMIN_NAME).exists():
        users.objects.create_superuser(username=ADMIN_NAME, email="admin@localhost", password=password)


def _valid_relay_key(relay_key: str) -> str:
    """The one of an earlier start, or a new one when this database does not know it."""
    from relaybatch.http.errors import Unauthenticated
    from routing.credentials.credential import authenticate

    if relay_key:
        try:
            authenticate(relay_key, now=timezone.now())
        except Unauthenticated:
            pass
        else:
            return relay_key
    answer = io.StringIO()
    call_command("create_key", "--service-account", SERVICE_ACCOUNT, "--json", stdout=answer)
    return str(json.loads(answer.getvalue())["key"])


if __name__ == "__main__":
    main()
