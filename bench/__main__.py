"""`python -m bench [names…]`: run benchmarks and print a table. Exit status 1 only if the work itself failed."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
import time
import traceback
from typing import TYPE_CHECKING

from bench.deployment import BenchDeployment, start_deployment
from bench.figures import BenchError, Figure, table
from bench.machine import MachineLoad, describe
from relaybatch.output import configure_streams
from relaybatch.quickstart.errors import QuickstartError

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = (
    *(
        "throughput",
        "submit",
        "small_submissions",
        "large_items",
        "first_item",
        "status",
        "results",
        "cancel",
    ),
    *("files", "backlog", "idle", "gate", "million"),
)
FOR_ENGINEERS = ("stages",)
"""Not part of the table: they change what they measure a little."""


def main() -> int:
    configure_streams()
    # This process plays callers and serves pages to itself: its access log says nothing.
    logging.disable(logging.INFO)
    arguments = _parse()
    settings = dict(pair.split("=", 1) for pair in arguments.set)
    began = time.monotonic()
    try:
        with start_deployment(worker_arguments=arguments.worker_arguments, settings=settings) as deployment:
            for line in describe():
                print(line, flush=True)
            found, all_worked = _run(arguments.names or NAMES, deployment)
            print(f"\n{table(found)}\n", flush=True)
    except QuickstartError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 1
    print(f"{time.monotonic() - began:.0f} s in all")
    return 0 if all_worked else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    known = (*NAMES, *FOR_ENGINEERS)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(known))
    parser.add_argument(
        "--worker-arguments",
        default="",
        help="added to the Procfile's worker line, for example --worker-arguments=-Psolo",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting for all processes"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    return arguments


def _run(names: Sequence[str], deployment: BenchDeployment) -> tuple[list[Figure], bool]:
    """Run the benchmarks; those that failed have a row that says so, and the others go on."""
    found: list[Figure] = []
    failed = False
    for name in names:
        print(f"bench      {name}", end="", flush=True)
        load = MachineLoad()
        try:
            found += _figures(name, deployment)
        except Exception as problem:  # noqa: BLE001 -- the figures of the others must not be lost
            failed = True
            found.append(Figure(name=name, value=None, unit="", note="FAILED"))
            _report(name, problem)
        print(f", {load.summary()}", flush=True)
    return found, not failed


def _report(name: str, problem: Exception) -> None:
    print(f"\nbench: {name}: {problem}", file=sys.stderr)
    if not isinstance(problem, BenchError):
        traceback.print_exception(problem)


def _figures(name: str, deployment: BenchDeployment) -> list[Figure]:
    """Import a benchmark and run it. Not earlier: it needs Django's settings, and those need the servers' URLs."""
    found: list[Figure] = importlib.import_module(f"bench.cases.{name}").figures(deployment)
    return found


if __name__ == "__main__":
    sys.exit(main())
