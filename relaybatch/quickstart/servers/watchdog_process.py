"""Run a command under the watchdog (watchdog.py), so that it cannot outlive this process."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WATCHDOG_SCRIPT = Path(__file__).with_name("watchdog.py")


@dataclass(frozen=True, slots=True)
class Account:
    """The system account that a command runs as, if it is not our own."""

    uid: int
    gid: int


class WatchdogProcess:
    """A running command. It ends when `stop` is called, and when this process dies."""

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
        """`stop_steps`, as `TERM:3,INT:1`: signals to send, and seconds to wait after each. SIGKILL comes last."""
        user = [f"--user={account.uid}:{account.gid}"] if account else []
        watchdog = [sys.executable, "-I", "-S", str(WATCHDOG_SCRIPT), f"--log={log}", f"--stop={stop_steps}"]
        self._watchdog = subprocess.Popen(
            [*watchdog, *user, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
        )
        self.log = log
        self.pid = self._read_pid()

    def _read_pid(self) -> int:
        assert self._watchdog.stdout is not None
        with self._watchdog.stdout as lines:
            line = lines.readline()
        if not line:
            self.wait()
            raise OSError(f"could not be started, see {self.log}")
        return int(line)

    @property
    def is_alive(self) -> bool:
        return self._watchdog.poll() is None

    @property
    def watchdog_pid(self) -> int:
        return self._watchdog.pid

    def request_stop(self) -> None:
        """Begin the stop steps without waiting. No effect if the command has exited."""
        assert self._watchdog.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watchdog.stdin.close()

    def wait(self, *, seconds: float | None = None) -> int:
        """Wait for the command's exit status. Raises `subprocess.TimeoutExpired` after `seconds`."""
        status = self._watchdog.wait(seconds)
        self.request_stop()
        return status

    def stop(self) -> int:
        self.request_stop()
        return self.wait()

    def kill(self) -> None:
        """Send SIGKILL, as in a crash, and wait until it is gone."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.stop()
