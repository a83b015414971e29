"""The web server. gunicorn finds this file by itself; `GUNICORN_CMD_ARGS` overrides what it says."""

import os
import runpy
from pathlib import Path
from typing import Any

from relaybatch.conf import env
from relaybatch.conf.startup import one_line_if_wrong
from relaybatch.server.bind_addresses import EVERYWHERE, binds
from relaybatch.server.gunicorn_hooks import answer_in_json, end_silent_connections, lines_of_the_server
from relaybatch.server.ipv6_sockets import keep_families_apart
from relaybatch.web import MOST_PROCESSES

with one_line_if_wrong():
    # A wrong variable ends this process, and not only the ones that it forks. They read the settings themselves: so
    # after a reload the files that hold secrets are read again.
    settings = runpy.run_path(str(Path(__file__).parent / "relaybatch" / "settings.py"))
    port = env.integer("PORT", 8080, minimum=1, maximum=65_535)
    workers = env.integer(
        "WEB_CONCURRENCY", max(2, min(os.cpu_count() or 1, 4)), minimum=1, maximum=MOST_PROCESSES
    )

bind = binds(EVERYWHERE, port=port)
keep_families_apart()
# Its own lines in our form as well, of the master too, which knows nothing of Django.
logconfig_dict = lines_of_the_server(settings["LOGGING"])
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
    end_silent_connections(server.LISTENERS)


def post_worker_init(worker: Any) -> None:  # noqa: ARG001 -- gunicorn's signature
    answer_in_json()
