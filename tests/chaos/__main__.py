"""`python -m tests.chaos`, or `make chaos`: inject faults into a deployment of its own, and check the guarantees.

Does not touch the configured database or Redis. Exit code 1 if a guarantee was violated (docs/operating/guarantees.md).
"""

from __future__ import annotations

import argparse
import random
import sys

from relaybatch.output import write_line
from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.shutdown import Shutdown, Stopped


def main() -> int:
    options = _parser().parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    from tests.chaos import report
    from tests.chaos.run import run_chaos

    shutdown = Shutdown()
    shutdown.install_handlers()
    try:
        result = run_chaos(seconds=options.seconds, seed=seed, shutdown=shutdown)
    except QuickstartError as problem:
        write_line(sys.stderr, str(problem))
        return 1
    except Stopped:
        return 130
    write_line(sys.stdout, report.to_json(result) if options.json else report.to_text(result))
    return 1 if result.findings.violations else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument(
        "--seed", type=int, help="selects the faults and their order; printed, random by default"
    )
    parser.add_argument("--json", action="store_true", help="print the report as one line of JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
