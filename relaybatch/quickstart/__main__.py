"""`python -m relaybatch.quickstart`, which is `make run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from relaybatch.output import configure_streams, write_line
from relaybatch.quickstart.demo.demo import run_demo
from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.shutdown import Shutdown, Stopped

MAX_PORT = 65535


def main() -> int:
    configure_streams()
    shutdown = Shutdown()
    shutdown.install_handlers()
    try:
        home = Path(os.environ.get("RELAYBATCH_HOME") or ".relaybatch").absolute()
        run_demo(home=home, port=_port(), shutdown=shutdown)
    except Stopped:
        return 0
    except QuickstartError as problem:
        write_line(sys.stderr, str(problem))
        return 1
    return 0


def _port() -> int:
    given = os.environ.get("PORT") or "8080"
    if not (given.isascii() and given.isdecimal() and 0 < int(given) <= MAX_PORT):
        raise QuickstartError(f"PORT is {given!r}: set it to a number from 1 to {MAX_PORT}")
    return int(given)


if __name__ == "__main__":
    sys.exit(main())
