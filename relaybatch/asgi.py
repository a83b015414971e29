"""The ASGI application, for deployments that serve one."""

import os
from concurrent.futures import ThreadPoolExecutor

from django.core.asgi import get_asgi_application

from relaybatch.under_asgi import with_bounds

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "relaybatch.settings")

application = with_bounds(get_asgi_application())

from routing.checks import require_readable_secrets  # noqa: E402 -- its models need the apps

# Servers import this inside of a running loop, where the database may not be asked.
with ThreadPoolExecutor(max_workers=1) as thread:
    thread.submit(require_readable_secrets).result()
