"""The sample batches of examples/: submitted, watched and shown."""

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

    from relaybatch.quickstart.demo.client import Client
    from relaybatch.quickstart.shutdown import Interruption

FINISH_SECONDS = 120.0
LOOK_SECONDS = 0.2
LINE_SECONDS = 2.0
"""How often a line is printed where lines cannot be rewritten."""
CLEAR_LINE = "\r\x1b[K"


def say(line: str) -> None:
    """The demo goes on where nobody can read it."""
    write_line(sys.stdout, line)


def run_samples(
    client: Client, *, examples: Path, interruption: Interruption, check: Callable[[], None]
) -> None:
    """Every JSON file of the folder is a batch. `check` raises when a process that is needed has ended."""
    files = sorted(examples.glob("*.json"))
    ids = [client.submit(file) for file in files]
    say(f"sample     {', '.join(file.name for file in files)} from {examples.name}/")
    _watch(client, ids, interruption=interruption, check=check)
    finished = [
        report.Finished(name=file.name, status=client.status(batch_id), results=client.results(batch_id))
        for file, batch_id in zip(files, ids, strict=True)
    ]
    for batch in finished:
        say("\n" + "\n".join(report.results_table(batch)))
    say("\n" + "\n".join(report.totals(finished)) + "\n")


def _watch(
    client: Client, ids: Sequence[str], *, interruption: Interruption, check: Callable[[], None]
) -> None:
    deadline = time.monotonic() + FINISH_SECONDS
    shown = Progress()
    while True:
        statuses = [client.status(batch_id) for batch_id in ids]
        ended = all(status["processing_status"] == "ended" for status in statuses)
        shown.show(report.progress_line(statuses), last=ended)
        if ended:
            return
        if time.monotonic() > deadline:
            raise QuickstartError(
                f"the sample is not finished after {FINISH_SECONDS:.0f} s: see the worker's log"
            )
        check()
        interruption.pause(LOOK_SECONDS)


class Progress:
    """One line that is rewritten on a terminal; elsewhere a line now and then, and the last."""

    def __init__(self) -> None:
        self._rewrites = sys.stdout.isatty()
        self._next_at = 0.0

    def show(self, line: str, *, last: bool) -> None:
        if self._rewrites:
            print(f"{CLEAR_LINE}{line}", end="\n" if last else "", flush=True)
        elif last or time.monotonic() >= self._next_at:
            say(line)
            self._next_at = time.monotonic() + LINE_SECONDS
