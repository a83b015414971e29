"""The first signal asks for a clean stop, the second one for a quick one; nothing else is interrupted."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from relaybatch.quickstart.shutdown import SIGNALS, MakeProcess, Shutdown, Stopped

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def shutdown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shutdown]:
    monkeypatch.delenv("MAKELEVEL", raising=False)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    shutdown = Shutdown()
    shutdown.install_handlers()
    yield shutdown
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_after_a_signal_every_wait_raises(shutdown: Shutdown, number: signal.Signals) -> None:
    shutdown.raise_if_requested()
    os.kill(os.getpid(), number)
    with pytest.raises(Stopped):
        shutdown.raise_if_requested()
    with pytest.raises(Stopped):
        shutdown.sleep(30)


def test_a_signal_ends_a_sleep(shutdown: Shutdown) -> None:
    began = time.monotonic()
    threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGTERM]).start()
    with pytest.raises(Stopped):
        shutdown.sleep(30)
    assert time.monotonic() - began < 20


def test_only_the_second_signal_runs_the_action(shutdown: Shutdown) -> None:
    runs: list[int] = []
    shutdown.on_second_signal(lambda: runs.append(1))
    os.kill(os.getpid(), signal.SIGINT)
    assert runs == []
    os.kill(os.getpid(), signal.SIGINT)
    assert runs == [1]


def test_stopped_passes_through_handlers_of_exceptions() -> None:
    assert not issubclass(Stopped, Exception)


def test_the_end_of_make_is_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKELEVEL", "1")
    make = MakeProcess.parent()
    assert make is not None
    assert not make.is_ending()
    assert MakeProcess(os.getpid()).is_ending(), "the parent is another process by now"
    monkeypatch.delenv("MAKELEVEL")
    assert MakeProcess.parent() is None
