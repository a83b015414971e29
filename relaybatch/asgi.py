"""The ASGI application, for deployments that serve one."""

from concurrent.futures import ThreadPoolExecutor

from django.core.asgi import get_asgi_application

from relaybatch.conf.startup import exit_on_bad_config

with exit_on_bad_config():
    django_application = get_asgi_application()

    from relaybatch.http.asgi_limits import with_body_limit
    from routing.checks import require_readable_secrets  # its models need the apps

    # Servers import this inside a running event loop, where Django forbids database queries.
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(require_readable_secrets).result()

application = with_body_limit(django_application)
