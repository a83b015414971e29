"""A signal at any moment of the main thread's waiting is heard, and blocks nothing."""

from __future__ import annotations

import signal
import threading
import time

from relaybatch.stop_signal import StopSignal


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
    """Thousands of short waits, with a signal in each: with a lock, one of them falls into its critical section."""
    heard = 0
    stop = StopSignal()

    def on_alarm(*_: object) -> None:
        nonlocal heard
        heard += 1
        stop.set()

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
    try:
        for _ in range(2000):
            assert stop.wait(30)
            stop = StopSignal()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard >= 2000
