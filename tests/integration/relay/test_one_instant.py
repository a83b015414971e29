"""Whatever changes while an answer is put together, all that is in it is of one instant.

Each statement of the answer in turn is followed by the end of the batches that it shows: their last items are settled
on another connection, and committed, before the next statement is sent.
"""

from __future__ import annotations

import functools
import html
import json
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from django.db import close_old_connections, connection, transaction
from psycopg.pq import TransactionStatus

from batches.execution.attempt_event import attempt_info
from batches.execution.claim import Claim, claim_item
from batches.execution.retry_policy import Settlement
from batches.execution.settling.settle import settle
from batches.models import Batch, BatchItem, ItemState
from batches.models.public_ids import public_id
from relaybatch.ids import uuid7
from routing.calls.call import Outcome, Target, Tokens
from routing.calls.failures import Failure, FailureCode
from tests.support.rows.admin_rows import owner_client
from tests.support.rows.submissions import chat_body, submit
from usage.events import EventDraft, draft_event
from usage.models import UsageEvent

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db(transaction=True)

BADGE = re.compile(r'<span class="badge state-(\w+)">')
FAILURE = Failure(FailureCode.TIMEOUT, "timed out after 300 s")


class After:
    """Around the statements of this thread's connection: `do` is done, elsewhere, once so many of them are over.

    Those of a transaction that changes something don't count: what is done elsewhere would wait for its locks.
    """

    def __init__(self, statements: int, do: Callable[[], object]) -> None:
        self.seen = 0
        self.failed: list[BaseException] = []
        self._statements = statements
        self._do = do

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        answer = execute(*statement)
        if not connection.in_atomic_block or connection.connection.read_only:
            self.seen += 1
            if self.seen == self._statements:
                thread = threading.Thread(target=self._elsewhere)
                thread.start()
                thread.join()
        return answer

    def _elsewhere(self) -> None:
        try:
            self._do()
        except BaseException as error:  # noqa: BLE001 -- for the test to raise
            self.failed.append(error)
        finally:
            connection.close()


def at_each_instant(prepare: Callable[[], Running], ask: Callable[[Running], None]) -> None:
    """Asks as often as the answer has statements, each time with new batches that end behind another statement."""
    after, statements = 0, 1
    while after < statements:
        after += 1
        running = prepare()
        interruption = After(after, running.end)
        with connection.execute_wrapper(interruption):
            ask(running)
        for error in interruption.failed:
            raise error
        statements = interruption.seen
    assert statements > 1


class Running:
    """Batches of three items each, of which the first has failed and the others run, until `end`."""

    def __init__(self, rows: SimpleNamespace, dialect: str, *, batches: int = 1, waiting: int = 0) -> None:
        self._dialect = dialect
        self.batches = [self._batch(rows, items=3 + waiting) for _ in range(batches)]
        self._claims = [claim for batch in self.batches for claim in self._claimed(batch)]

    @property
    def path(self) -> str:
        prefix = "/v1/messages/batches" if self._dialect == "messages" else "/v1/batches"
        return f"{prefix}/{public_id(self._dialect, self.batches[0].id)}"

    def end(self) -> None:
        for claim in self._claims:
            event = event_of(claim, Tokens(input=5, output=7))
            assert settle(claim, Settlement(ItemState.COMPLETED, response_length=2, event=event))

    def _batch(self, rows: SimpleNamespace, *, items: int) -> Batch:
        named = {} if self._dialect == "relay" else {"custom_ids": [f"row-{n}" for n in range(items)]}
        shape = "anthropic" if self._dialect == "messages" else "openai"
        return submit(rows, *[chat_body()] * items, dialect=self._dialect, shape=shape, **named)

    def _claimed(self, batch: Batch) -> list[Claim]:
        ids = BatchItem.objects.of(batch).values_list("id", flat=True)[:3]
        first, *others = [claim for item_id in ids if (claim := claim_item(item_id, worker_id=uuid7()))]
        event = event_of(first, None)
        assert settle(first, Settlement(ItemState.DISCARDED, failure=FAILURE, event=event))
        return others


def event_of(claim: Claim, tokens: Tokens | None) -> EventDraft:
    outcome = Outcome(target=Target(), status=200, sent=True, tokens=tokens)
    return draft_event(caller=claim.caller, outcome=outcome, attempt=attempt_info(claim), duration_ms=3)


def answered(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, response.content
    body = b"".join(response.streaming_content) if response.streaming else response.content
    answer: dict[str, Any] = json.loads(body)
    return answer


def check_relays(batch: dict[str, Any]) -> bool:
    """Whether it has ended. Before, two items run and nothing was used; afterwards they are completed."""
    ended = bool(batch["CompletedAt"])
    after = {"completed": 2, "discarded": 1}
    assert batch["counts"] == (after if ended else {"running": 2, "discarded": 1})
    assert batch["processing_status"] == ("ended" if ended else "in_progress")
    assert batch["usage"]["tokens"]["output"] == (14 if ended else 0)
    return ended


def check_messages(batch: dict[str, Any]) -> bool:
    ended = bool(batch["ended_at"])
    counts = batch["request_counts"]
    assert (counts["processing"], counts["succeeded"], counts["errored"]) == (
        (0, 2, 1) if ended else (3, 0, 0)
    )
    assert batch["processing_status"] == ("ended" if ended else "in_progress")
    assert bool(batch["results_url"]) == ended
    return ended


def check_chats(batch: dict[str, Any]) -> bool:
    ended = bool(batch["completed_at"])
    counts = batch["request_counts"]
    assert (counts["processing"], counts["succeeded"], counts["errored"]) == (
        (0, 2, 1) if ended else (2, 0, 1)
    )
    assert (counts["completed"], counts["failed"]) == (counts["succeeded"], counts["errored"])
    assert (batch["status"], batch["processing_status"]) == (
        ("completed", "ended") if ended else ("in_progress", "in_progress")
    )
    assert bool(batch["results_url"]) == ended
    assert (batch["usage"] or {}).get("output_tokens", 0) == (14 if ended else 0)
    return ended


CHECKS = {"relay": check_relays, "messages": check_messages, "chat": check_chats}
LISTS = {
    "relay": ("/v1/batches?dialect=relay", "batches"),
    "messages": ("/v1/messages/batches", "data"),
    "chat": ("/v1/batches", "data"),
}


@pytest.mark.parametrize("dialect", CHECKS)
def test_a_status_while_its_last_items_are_settled(
    client: Client, rows: SimpleNamespace, dialect: str
) -> None:
    def ask(running: Running) -> None:
        batch = answered(client.get(running.path, headers=rows.headers))
        CHECKS[dialect](batch)
        if dialect == "relay":
            assert Counter(item["state"] for item in batch["items"]) == batch["counts"]

    at_each_instant(lambda: Running(rows, dialect), ask)


def test_a_status_of_failed_items_alone(client: Client, rows: SimpleNamespace) -> None:
    def ask(running: Running) -> None:
        batch = answered(client.get(f"{running.path}?state=completed,running", headers=rows.headers))
        check_relays(batch)
        listed = Counter(item["state"] for item in batch["items"])
        assert listed == {state: count for state, count in batch["counts"].items() if state != "discarded"}

    at_each_instant(lambda: Running(rows, "relay"), ask)


@pytest.mark.parametrize("dialect", CHECKS)
def test_a_list_while_all_of_its_batches_end(client: Client, rows: SimpleNamespace, dialect: str) -> None:
    path, key = LISTS[dialect]

    def prepare() -> Running:
        Batch.objects.all().delete()
        return Running(rows, dialect, batches=2)

    def ask(_: Running) -> None:
        listed = answered(client.get(path, headers=rows.headers))[key]
        assert len(listed) == 2
        assert len({CHECKS[dialect](batch) for batch in listed}) == 1, (
            "one has ended, and the other one has not"
        )

    at_each_instant(prepare, ask)


@pytest.mark.parametrize("dialect", ["messages", "chat"])
def test_the_answer_to_a_cancel(client: Client, rows: SimpleNamespace, dialect: str) -> None:
    """One item waits and is cancelled, two run."""

    def ask(running: Running) -> None:
        batch = answered(client.post(f"{running.path}/cancel", headers=rows.headers))
        ended = batch["processing_status"] == "ended"
        counts = batch["request_counts"]
        seen = [counts[name] for name in ("processing", "succeeded", "errored", "canceled", "expired")]
        before = [4, 0, 0, 0, 0] if dialect == "messages" else [2, 0, 1, 1, 0]
        assert seen == ([0, 2, 1, 1, 0] if ended else before)
        assert bool(batch["results_url"]) == ended
        if dialect == "chat":
            assert batch["status"] == ("cancelled" if ended else "cancelling")
            assert bool(batch["cancelled_at"]) == bool(batch["usage"]) == ended

    at_each_instant(lambda: Running(rows, dialect, waiting=1), ask)


def test_the_admins_page_of_a_batch(rows: SimpleNamespace) -> None:
    admin = owner_client()

    def ask(running: Running) -> None:
        response = admin.get(f"/admin/batches/batch/{running.batches[0].id}/change/")
        page = html.unescape(response.content.decode())
        state, *items = BADGE.findall(page)
        ended = state == "ended"
        assert sorted(items) == sorted(["discarded", *["completed" if ended else "running"] * 2])
        assert ("2 completed, 1 discarded" if ended else "1 discarded, 2 running") in page
        assert ("14 output" if ended else "0 output") in page

    at_each_instant(lambda: Running(rows, "relay"), ask)


def test_the_admins_list_of_batches(rows: SimpleNamespace) -> None:
    admin = owner_client()

    def prepare() -> Running:
        Batch.objects.all().delete()
        return Running(rows, "relay", batches=2)

    def ask(_: Running) -> None:
        page = admin.get("/admin/batches/batch/").content.decode()
        states = BADGE.findall(page)
        assert states in (["ended"] * 2, ["in_progress"] * 2)
        title = "2 completed, 1 discarded" if states[0] == "ended" else "1 discarded, 2 running"
        assert page.count(f'title="{title}"') == 2

    at_each_instant(prepare, ask)


def test_the_admins_list_of_events(rows: SimpleNamespace) -> None:
    admin = owner_client()

    def prepare() -> Running:
        UsageEvent.objects.all().delete()
        return Running(rows, "relay")

    def ask(_: Running) -> None:
        page = admin.get("/admin/usage/usageevent/").content.decode()
        listed = len(re.findall('class="field-time"', page))
        assert f"\n{listed} usage event" in page

    at_each_instant(prepare, ask)


def test_no_transaction_is_open_and_no_statement_sent_while_a_large_status_is_read(
    client: Client, rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """A slow client would else hold a snapshot for as long as it reads."""
    batch = submit(rows, *[chat_body()] * 20_001)
    response = client.get(f"/v1/batches/{batch.id}", headers=rows.headers)
    assert response.streaming
    assert connection.connection.info.transaction_status == TransactionStatus.IDLE
    with django_assert_num_queries(0):
        items = answered(response)["items"]
    assert items[20_000] == {"idx": 20_000, "state": "available"}
    assert [item["idx"] for item in items] == list(range(20_001))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/batches?dialect=relay", 200),
        ("/v1/batches/00000000-0000-7000-8000-000000000000", 404),
        ("/v1/messages/batches?after_id=nobody", 400),
    ],
)
def test_the_connection_is_as_before_whatever_was_answered(
    client: Client, rows: SimpleNamespace, path: str, status: int
) -> None:
    assert client.get(path, headers=rows.headers).status_code == status
    connection.ensure_connection()  # the same: a refused request has lent it
    assert connection.connection.info.transaction_status == TransactionStatus.IDLE
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("read committed",)
        cursor.execute("SHOW transaction_read_only")
        assert cursor.fetchone() == ("off",)


def test_a_database_that_goes_away_in_the_middle_is_told_and_the_next_answer_is_whole(
    client: Client, rows: SimpleNamespace
) -> None:
    running = Running(rows, "relay")
    after, statuses = 0, [503]
    while statuses[-1] == 503:
        after += 1
        connection.ensure_connection()
        backend = connection.connection.info.backend_pid
        with connection.execute_wrapper(After(after, functools.partial(end_session, backend))):
            statuses.append(client.get(running.path, headers=rows.headers).status_code)
        close_old_connections()  # as before each request of a real server
        assert client.get(running.path, headers=rows.headers).status_code == 200
    assert statuses == [503] * after + [200]
    assert after > 4


def end_session(backend: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
