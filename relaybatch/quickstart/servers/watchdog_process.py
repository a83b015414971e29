"""The holder's side of the guard: a command that cannot outlive this process."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GUARD = Path(__file__).with_name("watchdog.py")


@dataclass(frozen=True, slots=True)
class Account:
    """The system account a command runs as, when that is not our own."""

    uid: int
    gid: int


class GuardedProcess:
    """A running command; it ends when `stop` is called and when the process that holds this object dies."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        stop_steps: str,
        environment: Mapping[str, str],
        directory: Path = Path("/"),
        account: Account | None = None,
    ) -> None:
        """`stop_steps`, as `TERM:3,INT:1`: what to send and how long to wait after each; SIGKILL comes last."""
        user = [f"--user={account.uid}:{account.gid}"] if account else []
        guard = [sys.executable, "-I", "-S", str(GUARD), f"--log={log}", f"--stop={stop_steps}"]
        self._guard = subprocess.Popen(
            [*guard, *user, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
        )
        self.log = log
        self.pid = self._read_pid()

    def _read_pid(self) -> int:
        assert self._guard.stdout is not None
        with self._guard.stdout as lines:
            line = lines.readline()
        if not line:
            self.wait()
            raise OSError(f"could not be started, see {self.log}")
        return int(line)

    @property
    def alive(self) -> bool:
        return self._guard.poll() is None

    @property
    def guard_pid(self) -> int:
        return self._guard.pid

    def ask_to_stop(self) -> None:
        """Begin the stop steps without waiting for them; harmless when it already ended."""
        assert self._guard.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.close()

    def wait(self, *, seconds: float | None = None) -> int:
        """The command's exit status; `subprocess.TimeoutExpired` when it takes longer."""
        status = self._guard.wait(seconds)
        self.ask_to_stop()
        return status

    def stop(self) -> int:
        self.ask_to_stop()
        return self.wait()

    def kill(self) -> None:
        """SIGKILL, as a crash would; returns when it is gone."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.stop()
