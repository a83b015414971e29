"""The WSGI application that the `web` process serves."""

from django.core.wsgi import get_wsgi_application

from relaybatch.conf.startup import APP_CANNOT_BE_LOADED, one_line_if_wrong

with one_line_if_wrong(exit_code=APP_CANNOT_BE_LOADED):
    application = get_wsgi_application()

    from routing.checks import require_readable_secrets  # its models need the apps

    require_readable_secrets()
