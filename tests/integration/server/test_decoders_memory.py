"""No decoder of untrusted bytes takes more than four times the size of a body or response, whatever it contains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.deployment import ROOT

MAX_TIMES = 4
# What the interpreter and the allocator take however little there is to decode.
FLOOR_BYTES = 4 << 20

_PROGRAM = (
    "import django; django.setup(); from tests.support.hostile.decoder_memory import main; main{groups}"
)


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the system does not report a process's peak"
)
@pytest.mark.parametrize(
    "groups", [("create", "retry"), ("item", "answer"), ("exchange", "result")], ids=" ".join
)
def test_no_decoder_takes_more_than_four_times_the_size_of_what_it_decodes(groups: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", _PROGRAM.format(groups=groups)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert rows
    odd = [row for row in rows if not row["outcome"].startswith(row["expected"])]
    assert not odd
    limits = {row["name"]: MAX_TIMES * row["size_bytes"] + FLOOR_BYTES for row in rows}
    over = [row for row in rows if row["total_bytes"] > limits[row["name"]]]
    assert not over
