"""The WSGI application that the `web` process serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "relaybatch.settings")

application = get_wsgi_application()

from routing.checks import require_readable_secrets  # noqa: E402 -- its models need the apps

require_readable_secrets()
