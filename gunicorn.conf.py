"""The web server. gunicorn finds this file by itself; `GUNICORN_CMD_ARGS` overrides what it says."""

import os
import runpy
from pathlib import Path
from typing import Any

from relaybatch.conf import env
from relaybatch.conf.startup import exit_on_bad_config
from relaybatch.server.bind_addresses import ALL_INTERFACES, usable_binds
from relaybatch.server.gunicorn_hooks import gunicorn_logging, set_socket_timeouts, use_json_errors
from relaybatch.server.ipv6_sockets import use_ipv6_only_sockets
from relaybatch.web import MAX_PROCESSES

with exit_on_bad_config():
    # A wrong variable ends this process, and not only the ones that it forks. They read the settings themselves: so
    # after a reload the files that hold secrets are read again.
    settings = runpy.run_path(str(Path(__file__).parent / "relaybatch" / "settings.py"))
    port = env.integer("PORT", 8080, minimum=1, maximum=65_535)
    workers = env.integer(
        "WEB_CONCURRENCY", max(2, min(os.cpu_count() or 1, 4)), minimum=1, maximum=MAX_PROCESSES
    )

bind = usable_binds(ALL_INTERFACES, port=port)
use_ipv6_only_sockets()
# Its own lines in our form as well, of the master too, which knows nothing of Django.
logconfig_dict = gunicorn_logging(settings["LOGGING"])
loglevel = settings["LOG_LEVEL"]
worker_class = "gthread"
threads = 8
# An idle connection outlives the usual proxies' 60 s, so that a proxy never sends on one that is just being closed.
keepalive = 65
# Threads may stream a million results for minutes; this is about a whole process that hangs.
timeout = 120
graceful_timeout = settings["RELAY_SHUTDOWN_GRACE_S"]
# It would leave a socket in the home directory of whoever runs it.
control_socket_disable = True


def when_ready(server: Any) -> None:
    set_socket_timeouts(server.LISTENERS)


def post_worker_init(worker: Any) -> None:  # noqa: ARG001 -- gunicorn's signature
    use_json_errors()
