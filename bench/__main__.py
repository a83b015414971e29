"""`python -m bench [names…]`: run benchmarks and print a table. Exit status 1 only if the work itself failed."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from bench.deployment import BenchDeployment, start_deployment
from bench.figures import BenchError, Figure, table
from relaybatch.output import configure_streams
from relaybatch.quickstart.errors import QuickstartError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("submit", "large_items", "first_item", "throughput", "reading", "gate", "million")
SYNCS = 20


def main() -> int:
    configure_streams()
    arguments = _parse()
    settings = dict(pair.split("=", 1) for pair in arguments.set)
    began = time.monotonic()
    try:
        with start_deployment(worker_arguments=arguments.worker_arguments, settings=settings) as deployment:
            print(_machine(deployment.home), flush=True)
            found = [figure for name in arguments.names or NAMES for figure in _figures(name, deployment)]
    except (BenchError, QuickstartError) as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 1
    print(f"\n{table(found)}\n\n{time.monotonic() - began:.0f} s in all")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(NAMES))
    parser.add_argument(
        "--worker-arguments",
        default="",
        help="added to the Procfile's worker line, for example --worker-arguments=-Psolo",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting for all processes"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    return arguments


def _figures(name: str, deployment: BenchDeployment) -> list[Figure]:
    """Import a benchmark and run it. Not earlier: it needs Django's settings, and those need the servers' URLs."""
    print(f"bench      {name}", flush=True)
    found: list[Figure] = importlib.import_module(f"bench.{name}").figures(deployment)
    return found


def _machine(home: Path) -> str:
    """What the figures depend on most: processors, the load on them, and the time of a sync to disk."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"machine    {os.cpu_count()} processors, load {load:.1f}, a sync to disk {_sync_ms(home):.1f} ms"


def _sync_ms(home: Path) -> float:
    with tempfile.TemporaryFile(dir=home) as file:
        began = time.perf_counter()
        for _ in range(SYNCS):
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - began) * 1000 / SYNCS


if __name__ == "__main__":
    sys.exit(main())
