"""The web server. gunicorn finds this file by itself; `GUNICORN_CMD_ARGS` overrides what it says."""

import os
from typing import Any

from relaybatch.refused_by_server import answer_in_json, end_silent_connections

bind = f"0.0.0.0:{os.environ.get('PORT') or 8080}"
workers = int(os.environ.get("WEB_CONCURRENCY") or max(2, min(os.cpu_count() or 1, 4)))
worker_class = "gthread"
threads = 8
# An idle connection outlives the usual proxies' 60 s, so that a proxy never sends on one that is just being closed.
keepalive = 65
# Threads may stream a million results for minutes; this is about a whole process that hangs.
timeout = 120
graceful_timeout = int(os.environ.get("RELAY_SHUTDOWN_GRACE_S") or 30)
# It would leave a socket in the home directory of whoever runs it.
control_socket_disable = True


def when_ready(server: Any) -> None:
    end_silent_connections(server.LISTENERS)


def post_worker_init(worker: Any) -> None:  # noqa: ARG001 -- gunicorn's signature
    answer_in_json()
