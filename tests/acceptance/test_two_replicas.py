"""Two web processes and two workers on two machines, which are two working directories: what each sees of the other."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from batches.models import Batch
from tests.support.calls.web_batches import readable_items, submit_over
from tests.support.servers.deployment import wait_for_end
from tests.support.servers.web import web_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.servers.object_server import ObjectServer
    from tests.support.servers.web import Web

ITEMS = 20

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.endurance]


def machine(tmp_path: Path, name: str) -> dict[str, str]:
    """The variables of a process of one machine, whose payload directory is its own."""
    return {"RELAY_BATCH_PAYLOAD_DIR": str(tmp_path / name / "relay-batch-payloads")}


@contextlib.contextmanager
def two_webs(tmp_path: Path, environment: dict[str, str]) -> Iterator[tuple[Web, Web]]:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        web_process(tmp_path / "one", **environment, **machine(tmp_path, "one")) as one,
        web_process(tmp_path / "two", **environment, **machine(tmp_path, "two")) as two,
    ):
        yield one, two


@pytest.mark.parametrize("kind", ["postgres", "s3"])
def test_without_a_shared_directory_each_reads_what_the_other_took_and_either_worker_runs_it(
    deployment: Deployment,
    catalog: SimpleNamespace,
    object_server: ObjectServer,
    tmp_path: Path,
    kind: str,
) -> None:
    """Responses are in the store, too, whatever their size."""
    url = object_server.new_bucket() if kind == "s3" else "postgres:"
    environment = {"RELAY_BATCH_PAYLOAD_URL": url, "RELAY_BATCH_INLINE_RESPONSE_BYTES": "0"}
    environment |= object_server.environment
    with two_webs(tmp_path, environment) as (one, two):
        deployment.sweeper(**environment, **machine(tmp_path, "two"))
        for name, taker, reader in (("one", two, one), ("two", one, two)):
            worker = deployment.worker(ready=True, **environment, **machine(tmp_path, name))
            batch = submit_over(taker, catalog, items=ITEMS)
            wait_for_end(batch)
            assert readable_items(reader, catalog, batch) == ITEMS
            worker.stop()
        assert [web.call("GET", "/readyz").status for web in (one, two)] == [200, 200]
    for name in ("one", "two"):
        assert not (tmp_path / name / "relay-batch-payloads").exists()


def test_with_directories_of_their_own_the_second_says_so_and_takes_nothing(
    deployment: Deployment, catalog: SimpleNamespace, tmp_path: Path
) -> None:
    with two_webs(tmp_path, {}) as (one, two):
        batch = submit_over(one, catalog, items=ITEMS)
        assert one.call("GET", "/readyz").status == 200
        not_ready = two.call("GET", "/readyz")
        assert not_ready.status == 503
        assert "the payload store has lost its marker" in not_ready.json["checks"]["payload_store"]
        refused = two.call(
            "POST",
            "/v1/batches",
            headers={**catalog.headers, "Content-Type": "application/json"},
            body=b'{"shape":"openai","requests":[{"model":"echo-1","messages":[]}]}',
        )
        assert (refused.status, refused.json["error"]["code"]) == (503, "store_unavailable")
        assert list(Batch.objects.all()) == [batch], "nothing of it is stored"
        assert list((tmp_path / "two" / "relay-batch-payloads").iterdir()) == []
        deployment.worker(ready=True, **machine(tmp_path, "one"))
        deployment.sweeper(**machine(tmp_path, "one"))
        wait_for_end(batch)
        assert readable_items(one, catalog, batch) == ITEMS
