"""One item's attempt in this process: every way it can end that a real upstream, store and catalog can bring about."""

from __future__ import annotations

import functools
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.utils import timezone

from batches.completion.cancel import cancel_batch
from batches.execution.attempt_event import worker_lost_settlement
from batches.execution.claim import claim_item
from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.execution.settling.settle import settle
from batches.execution.worker_monitor import WorkerMonitor
from batches.models import BatchItem, ItemResponse
from batches.payloads import open_store
from batches.results.responses import read_response
from relaybatch.ids import uuid7
from routing.models import Binding, Model, Policy, RelayKey
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.run.races import run_concurrently
from tests.support.servers.deployment import wait_for_end
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable
    from types import SimpleNamespace

    from pytest_django import Settings

    from batches.models import Batch
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


def run(batch: Batch) -> BatchItem:
    """Executes the batch's one item as often as it is available at once; the row afterwards."""
    item = BatchItem.objects.get(batch_id=batch.id)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    item.refresh_from_db()
    return item


def event(batch: Batch) -> UsageEvent:
    return UsageEvent.objects.get(batch_id=batch.id)


def test_eight_threads_that_execute_one_item_make_one_call_and_one_event(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog)
    item = BatchItem.objects.get(batch_id=batch.id)
    run_concurrently(
        [functools.partial(execute_item, item.id, in_flight=InFlightItems(uuid7(), slots=8))] * 8
    )
    assert len(upstream.requests) == 1
    assert UsageEvent.objects.count() == 1
    batch.refresh_from_db()
    assert batch.final_counts == {"completed": 1}


def test_a_claim_that_was_committed_before_the_connection_dropped_is_found_again(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog)
    item = BatchItem.objects.get(batch_id=batch.id)
    running = InFlightItems(uuid7(), slots=8)
    assert claim_item(item.id, worker_id=running.worker_id)
    execute_item(item.id, in_flight=running)
    item.refresh_from_db()
    assert (item.state, item.attempt) == ("completed", 1)
    execute_item(item.id, in_flight=running)
    assert len(upstream.requests) == 1


def test_an_item_that_was_taken_away_is_not_run_a_second_time_beside_the_first(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    """The process was suspended for so long that its item was given to the next attempt, and then resumed."""
    gate = threading.Event()
    upstream.script(answers.held(gate))
    batch = submit(catalog, max_attempts=2)
    item = BatchItem.objects.get(batch_id=batch.id)
    running = InFlightItems(uuid7(), slots=8)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(_on_a_thread, item.id, running)
        upstream.wait_for(lambda up: up.in_flight == 1)
        (claim,) = [entry.claim for entry in running.tracked()]
        assert settle(claim, worker_lost_settlement(claim))
        assert execute_item(item.id, in_flight=running) is None, "the first attempt is still under way here"
        gate.set()
        first.result(timeout=20)
    execute_item(item.id, in_flight=running)
    item.refresh_from_db()
    assert (item.state, item.attempt) == ("completed", 2)
    late = (
        UsageEvent.objects.filter(batch_id=batch.id)
        .order_by("attempt", "late")
        .values_list("attempt", "late")
    )
    assert list(late) == [(1, False), (1, True), (2, False)]


def _on_a_thread(item_id: uuid.UUID, running: InFlightItems) -> None:
    try:
        execute_item(item_id, in_flight=running)
    finally:
        connection.close()


def test_an_orphaned_item_of_its_own_process_is_settled_as_lost(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    item = BatchItem.objects.get(batch_id=batch.id)
    monitor = WorkerMonitor(slots=1)
    assert claim_item(item.id, worker_id=monitor.items.worker_id)
    BatchItem.objects.update(started_at=batch.created_at - timedelta(minutes=1))
    monitor.start()
    try:
        wait_for_end(batch)
    finally:
        monitor.deregister()
    assert BatchItem.objects.get(batch_id=batch.id).error_code == "worker_lost"


@pytest.mark.parametrize("inline_bytes", [0, 65_536])
def test_the_answer_is_stored_byte_for_byte(
    catalog: SimpleNamespace, upstream: Upstream, settings: Settings, inline_bytes: int
) -> None:
    settings.RELAY_BATCH_INLINE_RESPONSE_BYTES = inline_bytes
    body = (
        b'{"choices" : [], "big": 1180591620717411303424, "one": 1.0, "nul": "\\u0000", "half": "\\ud800", '
        b'"usage": {"prompt_tokens": 3, "completion_tokens": 4}}'
    )
    upstream.script(answers.body(body))
    batch = submit(catalog)
    item = run(batch)
    assert item.state == "completed"
    assert read_response(item) == body
    assert ItemResponse.objects.exists() == bool(inline_bytes)


def test_the_request_reaches_the_upstream_byte_for_byte(catalog: SimpleNamespace, upstream: Upstream) -> None:
    body = '{ "n":12345678901234567890123, "model": "echo-1","x":1.0,"t":"\u2028\\u0000"}'.encode()
    run(submit(catalog, body))
    assert [request.body for request in upstream.requests] == [body]


def test_the_event_names_batch_item_attempt_and_caller(catalog: SimpleNamespace) -> None:
    batch = submit(catalog)
    run(batch)
    saved = event(batch)
    names = (saved.policy, saved.project, saved.team, saved.model)
    assert names == (catalog.policy.name, catalog.project.name, catalog.team.name, "echo-1")
    assert (saved.public_batch_id, saved.item_idx, saved.attempt) == (str(batch.id), 0, 1)
    assert (saved.owner, saved.cost_nanos) == (catalog.relay_key.key_hash, 540_000)


def lose_requests(batch: Batch) -> None:
    open_store().discard(batch.id)


def disable_key(batch: Batch) -> None:
    RelayKey.objects.update(enabled=False)


def delete_key(batch: Batch) -> None:
    RelayKey.objects.all().delete()


def disable_policy(batch: Batch) -> None:
    Policy.objects.update(enabled=False)


def disable_model(batch: Batch) -> None:
    Model.objects.update(enabled=False)


def disable_bindings(batch: Batch) -> None:
    Binding.objects.update(enabled=False)


def forbid_model(batch: Batch) -> None:
    Policy.objects.update(models_granted=["elsewhere"])


@pytest.mark.parametrize(
    ("breaking", "code", "message"),
    [
        (lose_requests, "load_input_failed", "load input"),
        (disable_key, "credential_disabled", "credential"),
        (delete_key, "credential_deleted", "credential"),
        (disable_policy, "policy_disabled", "policy"),
        (disable_model, "model_disabled", "echo-1"),
        (disable_bindings, "no_binding", "echo-1"),
        (forbid_model, "model_not_allowed", "echo-1"),
    ],
)
def test_what_changed_since_the_submission_is_seen_before_anything_is_sent(
    catalog: SimpleNamespace,
    upstream: Upstream,
    breaking: Callable[[Batch], None],
    code: str,
    message: str,
) -> None:
    batch = submit(catalog)
    breaking(batch)
    item = run(batch)
    assert (item.state, item.error_code) == ("discarded", code)
    assert message in item.error
    assert not upstream.requests
    assert (event(batch).status, event(batch).error_kind, event(batch).cost_nanos) == (0, code, 0)


def test_an_item_of_another_shape_than_its_binding_is_not_sent(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    item = run(submit(catalog, chat_body(model="echo-1-messages")))
    assert item.error_code == "cross_shape"
    assert "cross-shape dispatch" in item.error
    assert not upstream.requests


def test_a_model_that_nobody_knows(catalog: SimpleNamespace, upstream: Upstream) -> None:
    item = run(submit(catalog, chat_body(model="unknown")))
    assert item.error_code == "model_not_found"
    assert "unknown" in item.error


def test_an_upstream_error_is_kept_for_the_owner(catalog: SimpleNamespace, upstream: Upstream) -> None:
    upstream.script(answers.json({"error": {"message": "no such thing"}}, status=400))
    item = run(submit(catalog))
    assert (item.error_code, item.upstream_status) == ("upstream_status", 400)
    assert item.error == "batch item: upstream status 400"
    assert b"no such thing" in bytes(item.upstream_error or b"")


def test_a_failure_that_may_pass_is_tried_again_while_attempts_are_left(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    upstream.handler = lambda _: answers.status(408, headers={"Retry-After": "0"})
    batch = submit(catalog, max_attempts=3)
    seen = [(item.state, item.attempt) for item in (run(batch) for _ in range(4))]
    assert seen == [("available", 1), ("available", 2), ("discarded", 3), ("discarded", 3)]
    keys = {request.headers["idempotency-key"] for request in upstream.requests}
    assert len(upstream.requests) == 3
    assert len(keys) == 1, "the upstream can tell that it is the same item"


def test_a_result_that_the_rows_refuse_ends_the_item_as_lost_instead_of_never(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE batches_batchitem ADD CONSTRAINT refuses CHECK (state <> 'completed')")
    try:
        item = run(batch)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE batches_batchitem DROP CONSTRAINT refuses")
    assert (item.state, item.error_code) == ("discarded", "worker_lost")


def test_a_response_that_cannot_be_stored_is_said(
    catalog: SimpleNamespace, upstream: Upstream, settings: Settings
) -> None:
    settings.RELAY_BATCH_INLINE_RESPONSE_BYTES = 0
    batch = submit(catalog)
    (Path(settings.RELAY_BATCH_PAYLOAD_DIR) / batch.id.hex / "responses").write_text("in the way")
    item = run(batch)
    assert (item.state, item.error_code) == ("discarded", "store_result_failed")
    assert event(batch).error_kind == "store_result_failed"
    assert event(batch).cost_nanos == 540_000, "it was answered, so it costs"


def test_a_payload_directory_that_vanished_fails_the_item_and_not_the_worker(
    catalog: SimpleNamespace, settings: Settings, tmp_path: Path
) -> None:
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "gone")
    batch = submit(catalog)
    shutil.rmtree(tmp_path / "gone")
    assert run(batch).error_code == "load_input_failed"


def test_an_item_found_overdue_is_not_sent_and_leaves_no_event(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog, lifetime_seconds=60)
    type(batch).objects.update(expires_at=timezone.now())
    item = run(batch)
    assert (item.state, item.error_code, item.attempt) == ("expired", "expired", 0)
    assert not upstream.requests
    assert not UsageEvent.objects.exists()


def test_an_item_whose_message_comes_after_the_cancel_is_left_alone(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(catalog)
    cancel_batch(batch)
    assert run(batch).state == "cancelled"
    assert not upstream.requests


def test_a_message_for_an_item_that_is_gone_does_nothing(catalog: SimpleNamespace) -> None:
    assert execute_item(uuid7(), in_flight=InFlightItems(uuid7(), slots=8)) is None
