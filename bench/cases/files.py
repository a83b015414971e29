"""A batch of a file: 50,000 lines in 150 MB are uploaded, validated, run and finalized, and the output file is read."""

from __future__ import annotations

import http.client
import json
import os
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, TypeVar

from batches.models import Batch
from bench.figures import BenchError, Figure, at_most, ratio_at_most, require
from bench.measurements import Memory
from bench.workload import clear_tables, item_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bench.deployment import BenchDeployment
    from bench.web import Web

T = TypeVar("T")

LINES, FILE_BYTES = 50_000, 150_000_000
MAX_RUN_SECONDS = 600
ENDPOINT = "/v1/chat/completions"
READ_BYTES = 1 << 18
MAX_GROWTH_BYTES = 64 << 20
_BOUNDARY = "b0undary"


def figures(deployment: BenchDeployment) -> list[Figure]:
    clear_tables()
    path = deployment.home / "input.jsonl"
    _write_lines(path)
    with ExitStack() as stack:
        web = stack.enter_context(deployment.start_web())
        sweeper = stack.enter_context(deployment.start_sweeper())
        _run_small(web)  # so that modules and pools are there before memory is measured
        memories = {"web": Memory(web.worker_pid), "sweeper": Memory(sweeper.pid)}
        for memory in memories.values():
            memory.begin()
        upload_seconds, file_id = _time_call(lambda: _upload(web, path))
        validation_seconds, batch_id = _time_call(lambda: _validate(web, file_id))
        worker = stack.enter_context(deployment.start_worker())
        memories["worker"] = Memory(worker.pid)
        memories["worker"].begin()
        run_seconds, batch = _time_call(lambda: _run(web, batch_id))
        read_seconds, read_bytes = _time_call(lambda: _read(web, batch["output_file_id"]))
        growths = {name: memory.growth_bytes() or 0 for name, memory in memories.items()}
        finalizing_seconds = _finalizing_seconds(batch_id)
    bare_seconds, _ = _time_call(lambda: _copy_durably(path, deployment.home / "bare"))
    clear_tables()
    grown = ", ".join(f"{name} {growth / 2**20:.0f} MiB" for name, growth in growths.items())
    return [
        Figure(
            name=f"upload of {LINES:,} lines, {FILE_BYTES / 1e6:.0f} MB",
            value=upload_seconds,
            unit="s",
            reference=bare_seconds,
            note="bare: the file copied and synced to disk",
        ),
        Figure(name="  validation", value=validation_seconds, unit="s", note="until in_progress"),
        Figure(
            name="  run to completed, 8 calls, 0 ms",
            value=LINES / run_seconds,
            unit="/s",
            note=f"{run_seconds:.0f} s, {finalizing_seconds:.1f} of them for the files",
        ),
        Figure(
            name="  output file read",
            value=read_bytes / read_seconds / 1e6,
            unit="MB/s",
            note=f"{read_bytes / 1e6:.0f} MB",
        ),
        Figure(
            name="  largest growth of a process's memory",
            value=max(growths.values()) / 2**20,
            unit="MiB",
            reference=FILE_BYTES / 2**20,
            goals=(at_most(MAX_GROWTH_BYTES >> 20), ratio_at_most(0.5)),
            note=grown,
        ),
    ]


def _run_small(web: Web) -> None:
    """A file that fails its validation."""
    _wait(web, _create(web, _post_file(web, b"{", size_bytes=1)), "failed")


def _write_lines(path: Path) -> None:
    with path.open("wb") as file:
        for number in range(LINES):
            file.write(_line(number))


def _line(number: int) -> bytes:
    start = f'{{"custom_id":"item-{number}","method":"POST","url":"{ENDPOINT}","body":'.encode()
    size = FILE_BYTES // LINES - len(start) - len(b"}\n")
    return start + item_body(number, delay_ms=0, size=size) + b"}\n"


def _upload(web: Web, path: Path) -> str:
    with path.open("rb") as file:
        return _post_file(web, iter(lambda: file.read(READ_BYTES), b""), size_bytes=path.stat().st_size)


def _post_file(web: Web, content: bytes | Iterator[bytes], *, size_bytes: int) -> str:
    part = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name="
    start = f'{part}"purpose"\r\n\r\nbatch\r\n{part}"file"; filename="in.jsonl"\r\n\r\n'.encode()
    end = f"\r\n--{_BOUNDARY}--\r\n".encode()
    headers = web.headers | {
        "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}",
        "Content-Length": str(len(start) + size_bytes + len(end)),
    }
    pieces = (content,) if isinstance(content, bytes) else content
    with closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=120)) as connection:
        connection.request("POST", "/v1/files", body=_whole(start, pieces, end), headers=headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
    require(answer.status == 200, f"the upload was answered with {answer.status}: {found}")
    return str(found["id"])


def _whole(start: bytes, pieces: Iterator[bytes] | tuple[bytes], end: bytes) -> Iterator[bytes]:
    yield start
    yield from pieces
    yield end


def _validate(web: Web, file_id: str) -> str:
    batch_id = _create(web, file_id)
    batch = _wait(web, batch_id, "in_progress")
    require(batch["request_counts"]["total"] == LINES, f"{batch['request_counts']} of {LINES} items")
    return batch_id


def _create(web: Web, file_id: str) -> str:
    given = {"input_file_id": file_id, "endpoint": ENDPOINT, "completion_window": "24h"}
    status, answer = web.call("POST", "/v1/batches", body=json.dumps(given).encode())
    require(status == 200, f"the create was answered with {status}: {answer[:300]!r}")
    return str(json.loads(answer)["id"])


def _run(web: Web, batch_id: str) -> Any:
    batch = _wait(web, batch_id, "completed")
    require(batch["request_counts"]["completed"] == LINES, f"{batch['request_counts']} of {LINES} completed")
    return batch


def _wait(web: Web, batch_id: str, status: str) -> Any:
    deadline = time.monotonic() + MAX_RUN_SECONDS
    while time.monotonic() < deadline:
        batch = json.loads(web.call("GET", f"/v1/batches/{batch_id}")[1])
        if batch["status"] == status:
            return batch
        time.sleep(0.05)
    raise BenchError(f"the batch is {batch['status']}, not {status}")


def _finalizing_seconds(batch_id: str) -> float:
    batch = Batch.objects.get(id=batch_id.removeprefix("batch_"))
    if batch.ended_at is None or batch.finalized_at is None:
        raise BenchError("the batch is not finalized")
    return (batch.finalized_at - batch.ended_at).total_seconds()


def _read(web: Web, file_id: str) -> int:
    size_bytes = lines = 0
    with closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=120)) as connection:
        connection.request("GET", f"/v1/files/{file_id}/content", headers=web.headers)
        answer = connection.getresponse()
        while piece := answer.read(READ_BYTES):
            size_bytes, lines = size_bytes + len(piece), lines + piece.count(b"\n")
    require((answer.status, lines) == (200, LINES), f"{answer.status}: {lines} of {LINES} lines")
    return size_bytes


def _copy_durably(path: Path, target: Path) -> None:
    """Reference: what an upload can not be faster than, without a socket."""
    with path.open("rb") as source, target.open("wb") as copy:
        while piece := source.read(READ_BYTES):
            copy.write(piece)
        copy.flush()
        os.fsync(copy.fileno())


def _time_call(work: Callable[[], T]) -> tuple[float, T]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
