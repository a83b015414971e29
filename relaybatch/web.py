"""`python -m relaybatch.web`: the web server, in the place of this process.

gunicorn reads WEB_CONCURRENCY while it is imported, before its configuration, and breaks off at an empty one.
"""

from __future__ import annotations

import os
import sys

from relaybatch import env
from relaybatch.starting import one_line_if_wrong

MOST_PROCESSES = 1024


def main() -> None:
    with one_line_if_wrong():
        processes = env.optional_integer("WEB_CONCURRENCY", minimum=1, maximum=MOST_PROCESSES)
    if processes is None:
        os.environ.pop("WEB_CONCURRENCY", None)
    os.execvp("gunicorn", ["gunicorn", "relaybatch.wsgi", *sys.argv[1:]])  # noqa: S606, S607 -- as in a Procfile


if __name__ == "__main__":
    main()
