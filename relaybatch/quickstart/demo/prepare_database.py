"""`python -m relaybatch.quickstart.demo.prepare_database CATALOG`: create the demo's tables, catalog, admin, relay key.

One process for all of them, since Django's start takes the time; safe to repeat. The only line on stdout is a valid
relay key. No other module of the quickstart imports Django.
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
    """Create the admin unless it exists: its password may have been changed."""
    users = get_user_model()
    if not users.objects.filter(username=ADMIN_NAME).exists():
        users.objects.create_superuser(username=ADMIN_NAME, email="admin@localhost", password=password)


def _valid_relay_key(relay_key: str) -> str:
    """Return the key of an earlier start, or a new one if this database does not accept it."""
    from relaybatch.http.errors import Unauthenticated
    from routing.credentials.credential import authenticate

    if relay_key:
        try:
            authenticate(relay_key, now=timezone.now())
        except Unauthenticated:
            pass
        else:
            return relay_key
    output = io.StringIO()
    call_command("create_key", "--service-account", SERVICE_ACCOUNT, "--json", stdout=output)
    return str(json.loads(output.getvalue())["key"])


if __name__ == "__main__":
    main()
