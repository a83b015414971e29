"""`python -m relaybatch.web`: replace this process by gunicorn, the web server.

gunicorn reads WEB_CONCURRENCY while it is imported, before its configuration file, and fails if it is empty.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from relaybatch.conf import env
from relaybatch.conf.startup import exit_on_bad_config

MAX_PROCESSES = 1024
CONFIGURATION = Path(__file__).resolve().parents[1] / "gunicorn.conf.py"


def main() -> None:
    with exit_on_bad_config():
        processes = env.optional_integer("WEB_CONCURRENCY", minimum=1, maximum=MAX_PROCESSES)
    if processes is None:
        os.environ.pop("WEB_CONCURRENCY", None)
    server = [sys.executable, "-m", "gunicorn", "--config", str(CONFIGURATION), "relaybatch.wsgi"]
    os.execv(sys.executable, [*server, *sys.argv[1:]])  # noqa: S606 -- as a Procfile line would


if __name__ == "__main__":
    main()
