"""The payload directory is full, read-only or missing: reported as what it is, nothing half stored, no item lost."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import Batch, BatchItem
from batches.payloads import open_store
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def directory(settings: Settings, tmp_path: Path) -> Path:
    settings.RELAY_BATCH_INLINE_RESPONSE_BYTES = 0
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "payloads")
    open_store().check()
    return tmp_path / "payloads"


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


@contextlib.contextmanager
def full(directory: Path) -> Iterator[None]:
    """No file of this process may grow beyond a few bytes: a write fails in its middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """Permissions bind everybody but root; for root it is mounted so."""
    if os.geteuid() != 0:
        modes = {path: path.stat().st_mode for path in (directory, *directory.rglob("*")) if path.is_dir()}
        for path in modes:
            path.chmod(0o500)
        try:
            yield
        finally:
            for path, mode in modes.items():
                path.chmod(mode)
        return
    for options in (["--bind", str(directory)], ["-o", "remount,bind,ro"]):
        if subprocess.run(["mount", *options, str(directory)], check=False, capture_output=True).returncode:
            pytest.skip("this root may not mount")
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@contextlib.contextmanager
def missing(directory: Path) -> Iterator[None]:
    away = directory.rename(directory.with_name("away"))
    try:
        yield
        assert not directory.exists(), "nobody made another one in its place"
    finally:
        away.rename(directory)


TROUBLES = pytest.mark.parametrize("trouble", [full, read_only, missing])


def post(client: Client, catalog: SimpleNamespace) -> Any:
    body = b'{"shape":"openai","requests":[' + chat_body() + b"]}"
    return client.post("/v1/batches", body, content_type="application/json", headers=catalog.headers)


@TROUBLES
def test_a_submission_is_refused_with_503_and_nothing_is_stored(
    client: Client, catalog: SimpleNamespace, directory: Path, trouble: Callable[[Path], Any]
) -> None:
    with trouble(directory):
        refused = post(client, catalog)
    assert (refused.status_code, json.loads(refused.content)["error"]["code"]) == (503, "store_unavailable")
    assert not Batch.objects.exists()
    assert [path.name for path in directory.rglob("*") if path.is_file()] == [".relaybatch-store"]
    assert post(client, catalog).status_code == 202, "it goes on as soon as the disk does"


@pytest.mark.parametrize(("trouble", "word"), [(read_only, "read-only"), (missing, "marker")])
def test_readiness_says_so(
    client: Client, directory: Path, trouble: Callable[[Path], Any], word: str
) -> None:
    with trouble(directory):
        checks = json.loads(client.get("/readyz").content)["checks"]
    assert word in checks["payload_store"]


@TROUBLES
def test_an_answer_that_cannot_be_stored_is_asked_for_again_while_attempts_are_left(
    catalog: SimpleNamespace, upstream: Upstream, directory: Path, trouble: Callable[[Path], Any]
) -> None:
    batch = submit(catalog, max_attempts=2)
    with contextlib.ExitStack() as disk:
        # The disk goes bad while the upstream works: the request could still be read.
        upstream.handler = lambda _: _entering(disk, trouble(directory))
        item = run(batch)
    assert (item.state, item.attempt, item.waiting_reason) == ("available", 1, "retry")
    assert UsageEvent.objects.get().error_kind == "store_result_failed"
    assert UsageEvent.objects.get().cost_nanos == 540_000, "it was answered, so it costs"
    upstream.handler = lambda _: answers.usable()
    BatchItem.objects.update(not_before=None)
    assert run(batch).state == "completed"


def _entering(disk: contextlib.ExitStack, trouble: contextlib.AbstractContextManager[None]) -> Any:
    disk.enter_context(trouble)
    return answers.usable()


def test_a_directory_that_is_gone_and_comes_back_costs_attempts_and_nothing_else(
    catalog: SimpleNamespace, upstream: Upstream, directory: Path
) -> None:
    batch = submit(catalog, max_attempts=2)
    with missing(directory):
        item = run(batch)
    assert (item.state, item.attempt) == ("available", 1)
    assert not upstream.requests
    BatchItem.objects.update(not_before=None)
    assert run(batch).state == "completed"


def test_without_attempts_left_the_item_ends_with_its_code(
    catalog: SimpleNamespace, upstream: Upstream, directory: Path
) -> None:
    batch = submit(catalog)
    shutil.rmtree(Path(settings.RELAY_BATCH_PAYLOAD_DIR))
    item = run(batch)
    assert (item.state, item.error_code) == ("discarded", "load_input_failed")


def run(batch: Batch) -> BatchItem:
    item = BatchItem.objects.get(batch_id=batch.id)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    item.refresh_from_db()
    return item
