"""`python -m relaybatch.quickstart`, which is `make run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from relaybatch.output import make_streams_writable, write_line
from relaybatch.quickstart.demo.demo import run_demo
from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.shutdown import Interruption, Stopped

HIGHEST_PORT = 65535


def main() -> int:
    make_streams_writable()
    interruption = Interruption()
    interruption.listen()
    try:
        home = Path(os.environ.get("RELAYBATCH_HOME") or ".relaybatch").absolute()
        run_demo(home=home, port=_port(), interruption=interruption)
    except Stopped:
        return 0
    except QuickstartError as problem:
        write_line(sys.stderr, str(problem))
        return 1
    return 0


def _port() -> int:
    given = os.environ.get("PORT") or "8080"
    if not (given.isascii() and given.isdecimal() and 0 < int(given) <= HIGHEST_PORT):
        raise QuickstartError(f"PORT is {given!r}: set it to a number from 1 to {HIGHEST_PORT}")
    return int(given)


if __name__ == "__main__":
    sys.exit(main())
