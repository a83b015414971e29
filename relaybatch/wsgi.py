"""The WSGI application that the `web` process serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "relaybatch.settings")

application = get_wsgi_application()
