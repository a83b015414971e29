"""A command's lines reach their stream, or the error is returned; a failed stream does no harm afterwards."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from relaybatch.output import NullStream, write_line

FULL = "/dev/full"
# Prints more than a buffer holds to a full disk; at its end Python would flush again, and exit with 120.
TO_A_FULL_DISK = """
import sys
from relaybatch.output import write_line
error = write_line(sys.stdout, "x" * 100_000)
sys.stderr.write(type(error).__name__)
"""


def test_a_line_is_written_with_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert write_line(sys.stdout, "a line") is None
    assert capsys.readouterr().out == "a line\n"


@pytest.mark.parametrize("stream", [None, NullStream()])
def test_a_missing_stream_is_an_error(stream: object) -> None:
    assert isinstance(write_line(stream, "a line"), OSError)


def test_a_null_stream_takes_everything() -> None:
    stream = NullStream()
    assert stream.writable()
    assert stream.write("abc") == 3


@pytest.mark.skipif(not os.path.exists(FULL), reason="this system has no /dev/full")
def test_a_stream_that_failed_does_not_change_the_exit_code() -> None:
    with open(FULL, "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-c", TO_A_FULL_DISK], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (0, b"OSError")
