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
    # Loaded here so that an invalid variable ends the master process too. The workers load the settings themselves, so
    # that a reload reads the files with secrets again.
    settings = runpy.run_path(str(Path(__file__).parent / "relaybatch" / "settings.py"))
    port = env.integer("PORT", 8080, minimum=1, maximum=65_535)
    workers = env.integer(
        "WEB_CONCURRENCY", max(2, min(os.cpu_count() or 1, 4)), minimum=1, maximum=MAX_PROCESSES
    )

bind = usable_binds(ALL_INTERFACES, port=port)
use_ipv6_only_sockets()
# gunicorn's lines in our format, also in the master process, where Django is not set up.
logconfig_dict = gunicorn_logging(settings["LOGGING"])
loglevel = settings["LOG_LEVEL"]
worker_class = "gthread"
threads = 8
# Longer than the usual 60 s of proxies, so that a proxy never sends on a connection that is just being closed.
keepalive = 65
# For a worker process that hangs as a whole; a thread may stream a million results for minutes.
timeout = 120
graceful_timeout = settings["RELAY_SHUTDOWN_GRACE_S"]
# The control socket would be a file in the user's home directory.
control_socket_disable = True


def when_ready(server: Any) -> None:
    set_socket_timeouts(server.LISTENERS)


def post_worker_init(worker: Any) -> None:  # noqa: ARG001 -- gunicorn's signature
    use_json_errors()
