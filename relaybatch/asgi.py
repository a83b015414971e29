"""The ASGI application, for deployments that serve one."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "relaybatch.settings")

application = get_asgi_application()
