"""Small batches are stored in one round trip and do not wait for one another; quota and replay keys hold as before."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from batches.models import Batch, BatchItem, IdempotencyKey, KeylessCreate, Owner
from batches.submission.idempotency import Idempotency, store_response_statement
from batches.submission.owner_quota import SHARE_QUOTA, quota_key
from batches.submission.resends import KeylessRequest
from batches.submission.store_rows import MAX_SMALL_ITEMS
from relaybatch.http.errors import TooManyRequests
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import deployment_environment, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)

KEY = Idempotency(key_hash=b"k" * 32, body_hash=b"b" * 32)
WAITING_FOR_A_LOCK = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
SMALL = [chat_body()] * MAX_SMALL_ITEMS


@pytest.fixture
def catalog() -> SimpleNamespace:
    """Its caller has submitted before."""
    rows = make_catalog("http://127.0.0.1:9")
    submit(rows)
    return rows


@pytest.fixture
def sharing(catalog: SimpleNamespace) -> Iterator[psycopg.Connection[Any]]:
    """Another session within a small submission of the same owner."""
    with psycopg.connect(deployment_environment()["DATABASE_URL"]) as session:
        session.execute(SHARE_QUOTA, [quota_key(Owner.objects.get().id)])
        yield session


@pytest.fixture
def short_lock_timeout() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")
    yield
    connection.close()


def max_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('max_connections')::int")
        return int(cursor.fetchone()[0])


def test_a_small_batch_is_stored_in_one_round_trip(catalog: SimpleNamespace) -> None:
    calls: list[str] = []

    def note(execute: Any, statement: str, *rest: Any) -> Any:
        calls.append(statement)
        return execute(statement, *rest)

    with connection.execute_wrapper(note):
        batch = submit(catalog, *SMALL, metadata={"a": "b"})
    stored, context = calls[2], calls[1]  # the first is that of the credential, the last one reads the batch
    assert len(calls) == 4
    assert "clock_timestamp" in context
    assert stored == SHARE_QUOTA
    assert batch.metadata == {"a": "b"}


def test_its_items_are_those_of_a_large_batch(catalog: SimpleNamespace) -> None:
    bodies = [chat_body("x" * size) for size in range(MAX_SMALL_ITEMS + 1)]
    ids = [rf"\N{number}\t" + '\t\\\n\r\u2028"' for number in range(len(bodies))]
    small = submit(catalog, *bodies[:-1], custom_ids=ids[:-1])
    large = submit(catalog, *bodies, custom_ids=ids)
    columns = ("idx", "custom_id", "request_offset", "request_length", "owner_id", "state", "attempt")
    assert list(BatchItem.objects.of(small).values_list(*columns)) == list(
        BatchItem.objects.of(large).values_list(*columns)[:MAX_SMALL_ITEMS]
    )


def test_small_batches_of_one_owner_do_not_wait_for_one_another(
    catalog: SimpleNamespace, sharing: object, short_lock_timeout: None
) -> None:
    submit(catalog, *SMALL)
    with pytest.raises(OperationalError):
        submit(catalog, *SMALL, chat_body())
    assert Batch.objects.count() == 2


def test_with_room_for_less_than_what_may_be_unseen_the_quota_is_checked_alone(
    catalog: SimpleNamespace, sharing: object, short_lock_timeout: None, settings: Settings
) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = max_connections() * MAX_SMALL_ITEMS + 1  # one item is open
    submit(catalog, *SMALL)
    with pytest.raises(OperationalError):
        submit(catalog)
    assert Batch.objects.count() == 2


def test_near_the_quota_a_small_batch_fills_it_exactly(catalog: SimpleNamespace, settings: Settings) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 3
    submit(catalog, chat_body(), chat_body())
    with pytest.raises(TooManyRequests):
        submit(catalog)
    assert BatchItem.objects.count() == 3


def test_a_replay_key_is_stored_with_a_small_batch_of_either_kind(catalog: SimpleNamespace) -> None:
    submit(catalog, replay_key=KEY)
    owner = Owner.objects.get()
    submit(catalog, replay_key=KeylessRequest(owner_name=owner.name, digest=bytes(32), resend_count=0))
    assert (IdempotencyKey.objects.count(), KeylessCreate.objects.count()) == (1, 1)


def test_a_large_batch_has_stored_no_key_while_it_waits_for_the_quota(
    catalog: SimpleNamespace, sharing: psycopg.Connection[Any]
) -> None:
    """A small one with the same key, which has the quota's lock already, would wait for it: a deadlock."""
    with ThreadPoolExecutor(1) as thread:
        large = thread.submit(_submit_elsewhere, catalog, replay_key=KEY)
        wait_until(lambda: _is_waited_for(sharing), lambda: "nobody waits")
        sharing.execute("SET LOCAL lock_timeout = '2s'")
        statement, values = store_response_statement(Owner.objects.get().id, KEY, status=202, body=b"")
        assert sharing.execute(statement, values).fetchall()
        sharing.rollback()
        large.result(timeout=20)
    assert IdempotencyKey.objects.count() == 1


def _submit_elsewhere(catalog: SimpleNamespace, **choices: Any) -> None:
    with contextlib.closing(connection):
        submit(catalog, *SMALL, chat_body(), **choices)


def _is_waited_for(session: psycopg.Connection[Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITING_FOR_A_LOCK, [session.info.backend_pid])
        return bool(cursor.fetchone()[0])


def test_within_a_transaction_of_the_caller_all_is_rolled_back_together(
    catalog: SimpleNamespace, settings: Settings
) -> None:
    """As in the admin: what the quick way refuses, the other one stores in the same transaction."""
    settings.RELAY_MAX_OPEN_ITEMS = 10
    with transaction.atomic():
        submit(catalog)
        assert Batch.objects.count() == 2
        transaction.set_rollback(True)
    assert Batch.objects.count() == 1
