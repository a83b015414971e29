"""Measure the memory of every decoder of untrusted bytes on hostile input, each in a process of its own.

    python -c "import django; django.setup(); from tests.support.hostile.decoder_memory import main; main()"

prints a line of JSON for each row. It needs the settings' variables, but connects to nothing in them. One process
imports the decoders and forks for each row: a child builds the bytes, another one decodes them, on a heap where nothing
was freed before. A row's `outcome` says that the decoder came as far as it should.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from routing.transport.connection_pool import tls_context
from tests.support.hostile.hostile_json import SIZE
from tests.support.hostile.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.hostile.hostile_json import Row


def measure(row: Row, *, served: bool) -> dict[str, object]:
    """Measure one row. `total_bytes`: the body, unless it is served by another process, and the decoder's growth."""
    shared = mmap.mmap(-1, SIZE * 4)
    length = int(_in_a_child(lambda: str(_fill(shared, row.body()))))
    found = json.loads(_in_a_child(lambda: _decoded(row, shared, length, served=served)))
    shared.close()
    held = 0 if served else length
    return {
        "name": row.name,
        "outcome": found["outcome"],
        "expected": row.outcome,
        "size_bytes": row.size_bytes or length,
        "total_bytes": held + found["growth"],
        "cpu_seconds": found["cpu_seconds"],
    }


def _fill(shared: mmap.mmap, body: bytes) -> int:
    shared[: len(body)] = body
    return len(body)


def _decoded(row: Row, shared: mmap.mmap, length: int, *, served: bool) -> str:
    body = memoryview(shared)[:length] if served else shared[:length]
    Path("/proc/self/clear_refs").write_text("5")
    before, began = _status("VmRSS"), time.process_time()
    outcome = row.decode(body)  # type: ignore[arg-type]
    seconds = round(time.process_time() - began, 2)
    return json.dumps({"outcome": outcome, "growth": _status("VmHWM") - before, "cpu_seconds": seconds})


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


def _in_a_child(work: Callable[[], str]) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, work().encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said.decode()


def main(*groups: str) -> None:
    tls_context()  # once in a process, whatever is decoded
    gc.collect()
    gc.disable()  # it would copy what the children share
    for group in groups or ROWS:
        for row in ROWS[group]():
            print(json.dumps({"group": group, **measure(row, served=group == "exchange")}), flush=True)
