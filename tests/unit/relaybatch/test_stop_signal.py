"""A signal at any moment of the main thread's wait is noticed, and blocks nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from relaybatch.stop_signal import StopSignal

# Thousands of short waits, with a signal in each: with a lock, one of them falls into its critical section.
UNDER_FIRE = """
import signal
from relaybatch.stop_signal import StopSignal

stop = StopSignal()
signal.signal(signal.SIGALRM, lambda *_: stop.set())
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
for _ in range(2000):
    assert stop.wait(30)
    stop = StopSignal()
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_it_is_set_until_the_end_and_ends_the_wait() -> None:
    stop = StopSignal()
    assert not stop.wait(0.01)
    threading.Timer(0.05, stop.set).start()
    began = time.monotonic()
    assert stop.wait(30)
    assert time.monotonic() - began < 20
    assert stop.wait(30)
    assert stop.is_set()


def test_a_handler_may_set_it_at_any_moment_of_a_wait() -> None:
    """In a process of its own: if it hangs, it is killed, and the test fails."""
    subprocess.run([sys.executable, "-c", UNDER_FIRE], check=True, timeout=30)


def test_any_number_of_threads_may_wait_for_it() -> None:
    stop = StopSignal()
    with ThreadPoolExecutor(3) as threads:
        waits = [threads.submit(stop.wait, 30) for _ in range(3)]
        stop.set()
        began = time.monotonic()
        assert [wait.result() for wait in waits] == [True] * 3
    assert time.monotonic() - began < 20
