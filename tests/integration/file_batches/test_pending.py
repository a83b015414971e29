"""Which batch is next: the oldest of each owner, without those that failed a moment ago."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batches.file_batches.pending import PendingBatches
from batches.file_batches.validate import validate_batch
from batches.models import Batch
from batches.payloads import PayloadReadError
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.file_batches import create, line
from tests.support.run.cache_clock import CacheClock

if TYPE_CHECKING:
    import uuid
    from types import SimpleNamespace

    from django.test import Client

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def test_one_owners_many_batches_do_not_hold_up_anothers_one(client: Client, rows: SimpleNamespace) -> None:
    other = make_caller(rows)
    many = [create(client, rows, line()) for _ in range(3)]
    one = create(client, other, line())
    done: list[uuid.UUID] = []

    def validate(batch_id: uuid.UUID) -> None:
        done.append(batch_id)
        validate_batch(batch_id)

    PendingBatches("validate_batch", Batch.objects.validating, validate).run(may_go_on=lambda: True)
    assert done == [many[0].id, one.id, many[1].id, many[2].id]
    assert not Batch.objects.validating().exists()


@pytest.mark.parametrize("error", [PayloadReadError("away"), ZeroDivisionError()])
def test_a_batch_that_fails_pauses_longer_each_time_and_holds_up_no_other(
    client: Client, rows: SimpleNamespace, error: Exception
) -> None:
    clock = CacheClock()
    bad, good = create(client, rows, line()), create(client, rows, line())
    tried: list[float] = []

    def validate(batch_id: uuid.UUID) -> None:
        if batch_id == bad.id:
            tried.append(clock())
            raise error
        validate_batch(batch_id)

    batches = PendingBatches("validate_batch", Batch.objects.validating, validate, clock=clock)
    began = clock()
    for _ in range(40):
        batches.run(may_go_on=lambda: True)
        clock.advance(1)
    assert [moment - began for moment in tried] == [0, 1, 3, 7, 15, 31]
    assert set(Batch.objects.validating()) == {bad}
    assert Batch.objects.get(id=good.id).total_items == 1


def test_it_stops_between_two_batches_when_the_process_does(client: Client, rows: SimpleNamespace) -> None:
    for _ in range(3):
        create(client, rows, line())
    answers = iter([True, False])
    PendingBatches("validate_batch", Batch.objects.validating, validate_batch).run(
        may_go_on=lambda: next(answers)
    )
    assert Batch.objects.validating().count() == 2
