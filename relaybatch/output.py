"""What a command says, wherever that goes: to a terminal of another encoding, a closed pipe, a full disk."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any


class NullStream(io.TextIOBase):
    """In the place of a stream that the process was started without."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


def configure_streams() -> None:
    """Characters that stdout's encoding lacks are escaped, as Python by itself does on stderr. Once at a start."""
    sys.stdout, sys.stderr = sys.stdout or NullStream(), sys.stderr or NullStream()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def write_line(stream: Any, text: str) -> OSError | None:
    """A whole line at once, to a stream or Django's wrapper of one; what prevented it.

    A stream that fails leads nowhere from then on: Python would try again at the process's end, and change its exit
    code.
    """
    underlying = getattr(stream, "_out", stream)
    if underlying is None or isinstance(underlying, NullStream):
        return OSError(errno.EBADF, os.strerror(errno.EBADF))
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except OSError as error:
        _redirect_to_null(underlying)
        return error
    return None


def _redirect_to_null(stream: Any) -> None:
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
