"""Failure points: what RELAY_FAULT may say, and what then happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from routing import failpoints

PASS_THREE_TIMES = """
from routing import failpoints
for number in (1, 2, 3):
    failpoints.failpoint("before_settle")
    print(number, flush=True)
"""


def pass_three_times(fault: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PASS_THREE_TIMES],
        env={**os.environ, "RELAY_FAULT": fault},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_nothing_happens_at_a_point_that_is_not_named() -> None:
    assert pass_three_times("after_claim:kill").stdout.split() == ["1", "2", "3"]


def test_kill_ends_the_process_at_the_point() -> None:
    ended = pass_three_times("before_settle:kill")

    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout == ""


def test_a_number_waits_for_the_nth_time() -> None:
    ended = pass_three_times("after_claim:stop, before_settle:kill@3")

    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout.split() == ["1", "2"]


def test_sleep_takes_its_seconds() -> None:
    fault = failpoints.parse_failpoints("in_publish:sleep=0.25@2")["in_publish"]

    assert (fault.action, fault.seconds, fault.nth) == ("sleep", 0.25, 2)


@pytest.mark.parametrize(
    "text",
    ["before_settle", "before_settle:explode", "befor_settle:kill", "in_publish:kill@0", "in_publish:sleep"],
)
def test_a_word_that_means_nothing_stops_the_start(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="RELAY_FAULT"):
        failpoints.parse_failpoints(text)
