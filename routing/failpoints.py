"""Failpoints: places in the path of an item, or of a batch's files, where a test can kill, stop or slow the process.

`RELAY_FAULT` lists them, by commas, as `point:action`:

    before_settle:kill        SIGKILL to this process
    after_claim:stop          SIGSTOP (SIGCONT continues it)
    before_send:sleep=2       the thread that reached the point sleeps two seconds
    after_send:kill@5         only when the point is reached for the fifth time in this process

When it is unset, as in every deployment, a failpoint costs one look-up in an empty dict.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import threading
import time
from dataclasses import dataclass, field

from django.core.exceptions import ImproperlyConfigured

ITEM_POINTS = (
    "after_claim",
    "before_send",
    "after_send",
    "before_settle",
    "in_group_settle",
    "while_settling",
    "after_settle",
    "in_publish",
)
FILE_POINTS = ("in_validation", "after_packing", "after_validation", "in_finalizing", "after_output_files")
POINTS = ITEM_POINTS + FILE_POINTS

_PATTERN = re.compile(
    rf"(?P<point>{'|'.join(POINTS)}):(?P<action>kill|stop|sleep=(?P<seconds>\d+(\.\d+)?))(@(?P<nth>[1-9]\d*))?"
)


@dataclass(slots=True)
class Failpoint:
    """What happens at a point. `nth`: only the nth time that the point is reached; None: every time."""

    action: str
    seconds: float = 0.0
    nth: int | None = None
    _reached: itertools.count[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def trigger(self) -> None:
        if self.nth is not None and next(self._reached) != self.nth:
            return
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "stop":
            # Sent to this thread: sent to the process, another thread may get it first while this one goes on.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        else:
            time.sleep(self.seconds)


def parse_failpoints(text: str) -> dict[str, Failpoint]:
    """Parse RELAY_FAULT into failpoints by name.

    Raises ImproperlyConfigured for an unknown word: a test must not pass because of a typo.
    """
    return dict(_parse_one(word.strip()) for word in text.split(",") if word.strip())


def _parse_one(word: str) -> tuple[str, Failpoint]:
    match = _PATTERN.fullmatch(word)
    if match is None:
        raise ImproperlyConfigured(
            f"RELAY_FAULT: expected point:action by commas, with a point of {', '.join(POINTS)} "
            "and an action of kill, stop, sleep=SECONDS, each also with @N"
        )
    nth = int(match["nth"]) if match["nth"] else None
    return match["point"], Failpoint(match["action"].partition("=")[0], float(match["seconds"] or 0), nth)


_failpoints = parse_failpoints(os.environ.get("RELAY_FAULT", ""))


def failpoint(name: str) -> None:
    """Trigger the failpoint if RELAY_FAULT names it; else do nothing."""
    found = _failpoints.get(name)
    if found is not None:
        found.trigger()
