"""What a command says, wherever that goes: to a terminal of another encoding, a closed pipe, a full disk."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any


class Nowhere(io.TextIOBase):
    """In the place of a stream that the process was started without."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


def make_streams_writable() -> None:
    """Characters that stdout's encoding lacks are escaped, as Python by itself does on stderr. Once at a start."""
    sys.stdout, sys.stderr = sys.stdout or Nowhere(), sys.stderr or Nowhere()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def write_line(stream: Any, text: str) -> OSError | None:
    """A whole line at once, to a stream or Django's wrapper of one; what prevented it.

    A stream that fails leads nowhere from then on: Python would try again at the process's end, and change its exit
    code.
    """
    underlying = getattr(stream, "_out", stream)
    if underlying is None or isinstance(underlying, Nowhere):
        return OSError(errno.EBADF, os.strerror(errno.EBADF))
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except OSError as error:
        _lead_nowhere(underlying)
        return error
    return None


def _lead_nowhere(stream: Any) -> None:
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
