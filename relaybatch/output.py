"""Write a command's output safely: other encodings, closed pipes, full disks, missing streams."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any


class NullStream(io.TextIOBase):
    """Stands in for a stream that the process was started without, and discards what is written."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


def configure_streams() -> None:
    """Escape characters that stdout's encoding lacks, as Python does on stderr. Call once at the start."""
    sys.stdout, sys.stderr = sys.stdout or NullStream(), sys.stderr or NullStream()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def write_line(stream: Any, text: str) -> OSError | None:
    """Write a whole line to a stream, or to Django's wrapper of one. Returns the error if it failed.

    A stream that failed is redirected to /dev/null: at exit, Python would try again to flush it, and change the exit
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
