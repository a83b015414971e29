"""The WSGI application that the `web` process serves."""

from django.core.wsgi import get_wsgi_application

from relaybatch.conf.startup import APP_LOAD_ERROR, exit_on_bad_config

with exit_on_bad_config(exit_code=APP_LOAD_ERROR):
    application = get_wsgi_application()

    from routing.checks import require_readable_secrets  # its models need the apps

    require_readable_secrets()
