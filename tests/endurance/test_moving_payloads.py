"""Payloads move to another store while a batch runs on real processes, and the command is killed in its middle."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from batches.models import BatchItem, PayloadChunk
from tests.support.calls.web_batches import readable_items, submit_over
from tests.support.servers.deployment import ROOT, deployment_environment, wait_for_end, wait_until
from tests.support.servers.web import Web, web_process
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import SimpleNamespace

    from batches.models import Batch
    from tests.support.servers.deployment import Deployment
    from tests.support.servers.object_server import ObjectServer, StoreRequest
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = 150


def command(*arguments: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "move_payloads", "--json", *arguments],
        cwd=ROOT,
        env=deployment_environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def result(*arguments: str, environment: dict[str, str]) -> dict[str, Any]:
    process = command(*arguments, environment=environment)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def new_web(folder: Path, environment: dict[str, str]) -> AbstractContextManager[Web]:
    """In a folder of its own for its log."""
    return web_process(Path(tempfile.mkdtemp(dir=folder)), **environment)


def completed(batch: Batch) -> int:
    return BatchItem.objects.filter(batch=batch, state="completed").count()


def kill_at_fifth_object(target: str, server: ObjectServer, environment: dict[str, str]) -> None:
    """SIGKILL when five objects are in the new store, as far as it has begun."""
    started: list[subprocess.Popen[bytes]] = []
    puts: list[StoreRequest] = []

    def kill_then(request: StoreRequest) -> None:
        if request.method == "PUT" and "/responses/" in request.path and started:
            puts.append(request)
            if len(puts) == 5:
                started[0].kill()

    if target == "s3":
        server.wrong = kill_then
    started.append(command(environment=environment))
    if target == "postgres":
        of_the_batch = PayloadChunk.objects.filter(name__contains="/responses/0/")
        before = of_the_batch.count()
        wait_until(lambda: of_the_batch.count() >= before + 5 or started[0].poll() is not None, lambda: "")
        started[0].kill()
    started[0].communicate(timeout=60)
    server.wrong = None
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize("target", ["s3", "postgres"])
def test_a_batch_runs_to_its_end_while_its_payloads_move(
    deployment: Deployment,
    catalog: SimpleNamespace,
    upstream: Upstream,
    object_server: ObjectServer,
    tmp_path: Path,
    target: str,
) -> None:
    def slow(_: object) -> Any:
        time.sleep(0.15)
        return answers.usable()

    upstream.handler = slow
    new = object_server.new_bucket() if target == "s3" else "postgres:"
    old = (tmp_path / "old").as_uri()
    base = object_server.environment | {"RELAY_BATCH_INLINE_RESPONSE_BYTES": "0"}
    first = base | {"RELAY_BATCH_PAYLOAD_URL": old}
    prepared = first | {"RELAY_BATCH_PAYLOAD_FALLBACK_URL": new}
    swapped = base | {"RELAY_BATCH_PAYLOAD_URL": new, "RELAY_BATCH_PAYLOAD_FALLBACK_URL": old}
    last = base | {"RELAY_BATCH_PAYLOAD_URL": new}

    worker, sweeper = deployment.worker(ready=True, **first), deployment.sweeper(**first)
    with new_web(tmp_path, first) as web:
        batch = submit_over(web, catalog, items=ITEMS)
        wait_until(lambda: completed(batch) >= 20, worker.log)
    assert result("--prepare", environment=prepared) == {"prepared": True}

    # Steps (a) and (b) of docs/operating/payload-stores.md, one process after the other: the new worker runs beside the
    # old sweeper, and reads what that one's release of the settings stored.
    for environment in (prepared, swapped):
        successor = deployment.worker(ready=True, **environment)
        worker.stop()
        with new_web(tmp_path, environment) as web:
            assert readable_items(web, catalog, batch) >= 20
        sweeper.stop()
        worker, sweeper = successor, deployment.sweeper(**environment)

    # Then the command, (c).
    kill_at_fifth_object(target, object_server, swapped)
    moved = result(environment=swapped)
    assert moved["not_moved"] == 0
    assert moved["objects"] > 1
    wait_for_end(batch)
    assert batch.final_counts == {"completed": ITEMS}
    result(environment=swapped)
    left = sorted(path.name for path in (tmp_path / "old").rglob("*"))
    assert left in ([".relaybatch-store"], [".relaybatch-store", batch.id.hex])

    # At last, (d): without the old store.
    worker.stop()
    sweeper.stop()
    with new_web(tmp_path, last) as web:
        assert readable_items(web, catalog, batch) == ITEMS
        assert web.call("GET", "/readyz").status == 200
