from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from redis import Connection

from tests.support.run.cache_clock import clock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["clock"]  # a fixture of several files


@dataclass
class RoundTrips:
    """What this process sends to Redis; the server's own statistics are of all that use it."""

    threads: list[int] = field(default_factory=list)
    scripts: int = 0

    def of(self, do: Callable[[], object]) -> int:
        """How many of this thread the second time takes: the scripts are known then."""
        do()
        self.threads.clear()
        do()
        return self.threads.count(threading.get_ident())

    def scripts_of(self, do: Callable[[], object]) -> int:
        """How many scripts it runs, in whatever thread."""
        before = self.scripts
        do()
        return self.scripts - before


@pytest.fixture
def round_trips(monkeypatch: pytest.MonkeyPatch) -> RoundTrips:
    found = RoundTrips()
    send: Any = Connection.send_packed_command

    def counted(self: Connection, command: Any, *args: Any, **options: Any) -> None:
        found.threads.append(threading.get_ident())
        found.scripts += b"EVALSHA" in (command if isinstance(command, bytes) else b"".join(command))
        send(self, command, *args, **options)

    monkeypatch.setattr(Connection, "send_packed_command", counted)
    return found
