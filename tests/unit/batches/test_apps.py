"""What loading the app brings, in a process that has no admin."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_ADMIN = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "relaybatch.settings"
from django.conf import settings
settings.INSTALLED_APPS = [
    app.replace("relaybatch.apps.SiteConfig", "django.contrib.admin.apps.SimpleAdminConfig")
    for app in settings.INSTALLED_APPS
]
settings.ROOT_URLCONF = "batches.urls"
import django
django.setup()
import sys
assert "batches.admin" not in sys.modules
import batches.tasks, uuid
from batches.models.public_ids import public_id
print(public_id("chat", uuid.UUID(int=1)))
"""


def test_a_worker_knows_the_ids_of_all_dialects_without_the_admin() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ADMIN], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "batch_00000000000000000000000000000001\n", done.stderr
