"""`python -m tests.chaos.deployment.prepare CATALOG OWNER…`: create tables, catalog and relay keys; print keys as JSON.

A process of its own, since it needs the settings of the deployment that is about to start.
"""

from __future__ import annotations

import io
import json
import sys

import django
from django.core.management import call_command


def main() -> None:
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    call_command("apply", sys.argv[1], stdout=sys.stderr)
    json.dump({owner: _relay_key(owner) for owner in sys.argv[2:]}, sys.stdout)


def _relay_key(owner: str) -> dict[str, str]:
    answer = io.StringIO()
    call_command("create_key", "--service-account", owner, "--json", stdout=answer)
    key: dict[str, str] = json.loads(answer.getvalue())
    return key


if __name__ == "__main__":
    main()
