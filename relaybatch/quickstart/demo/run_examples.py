"""Submit the example batches of examples/, print their progress and their results."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from relaybatch.output import write_line
from relaybatch.quickstart.demo import report
from relaybatch.quickstart.errors import QuickstartError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from relaybatch.quickstart.demo.client import DemoClient
    from relaybatch.quickstart.shutdown import Shutdown

MAX_RUN_SECONDS = 120.0
POLL_INTERVAL_SECONDS = 0.2
PROGRESS_INTERVAL_SECONDS = 2.0
"""How often a progress line is printed where lines cannot be rewritten."""
CLEAR_LINE = "\r\x1b[K"


def print_line(line: str) -> None:
    """Print a line. The demo goes on if stdout is closed or full."""
    write_line(sys.stdout, line)


def run_examples(
    client: DemoClient, *, examples: Path, shutdown: Shutdown, check: Callable[[], None]
) -> None:
    """Run every JSON file of the folder as a batch. `check` raises if a process of the demo has exited."""
    files = sorted(examples.glob("*.json"))
    ids = [client.submit(file) for file in files]
    print_line(f"sample     {', '.join(file.name for file in files)} from {examples.name}/")
    _wait_for_end(client, ids, shutdown=shutdown, check=check)
    finished = [
        report.FinishedBatch(name=file.name, status=client.status(batch_id), results=client.results(batch_id))
        for file, batch_id in zip(files, ids, strict=True)
    ]
    for batch in finished:
        print_line("\n" + "\n".join(report.results_table(batch)))
    print_line("\n" + "\n".join(report.totals(finished)) + "\n")


def _wait_for_end(
    client: DemoClient, ids: Sequence[str], *, shutdown: Shutdown, check: Callable[[], None]
) -> None:
    deadline = time.monotonic() + MAX_RUN_SECONDS
    progress = ProgressLine()
    while True:
        statuses = [client.status(batch_id) for batch_id in ids]
        ended = all(status["processing_status"] == "ended" for status in statuses)
        progress.show(report.progress_line(statuses), last=ended)
        if ended:
            return
        if time.monotonic() > deadline:
            raise QuickstartError(
                f"the sample is not finished after {MAX_RUN_SECONDS:.0f} s: see the worker's log"
            )
        check()
        shutdown.sleep(POLL_INTERVAL_SECONDS)


class ProgressLine:
    """One line that is rewritten on a terminal; elsewhere a line every PROGRESS_INTERVAL_SECONDS, and the last."""

    def __init__(self) -> None:
        self._rewrites = sys.stdout.isatty()
        self._next_at = 0.0

    def show(self, line: str, *, last: bool) -> None:
        if self._rewrites:
            print(f"{CLEAR_LINE}{line}", end="\n" if last else "", flush=True)
        elif last or time.monotonic() >= self._next_at:
            print_line(line)
            self._next_at = time.monotonic() + PROGRESS_INTERVAL_SECONDS
