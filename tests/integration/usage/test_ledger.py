"""Events and running totals: saved together, once, and exact under concurrent settling."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from routing.calls.call import Outcome, PriceList, Target, Tokens
from routing.calls.failures import Failure, FailureCode
from tests.support.rows.usage_rows import ANSWERED, TARGET, draft, refused, unreadable
from usage.ledger import SHARDS, event_ctes, parameters, record, record_many
from usage.models import UsageEvent, UsageTotal
from usage.totals import Total, batch_totals, delete_batch_total

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

BATCH = uuid.UUID(int=0xB)
PROJECT = uuid.UUID(int=0xC)


@pytest.mark.django_db
def test_an_event_keeps_every_fact_of_its_attempt() -> None:
    made = draft(batch_id=BATCH, public_batch_id="msgbatch_b", item_idx=7, custom_id="row-7", number=2)
    record(made)
    row = UsageEvent.objects.get()
    for name in made.__dataclass_fields__:
        assert getattr(row, name) == getattr(made, name), name
    assert (row.status, row.error_kind, row.attempt, row.cost_nanos) == (200, "", 2, 540_000)
    assert row.cost_breakdown == {"input": 120_000, "cache_read": 20_000, "output": 400_000}
    assert row.pricing == "plain@3"


@pytest.mark.django_db
def test_an_attempt_is_counted_once_however_often_it_is_recorded() -> None:
    first = draft(batch_id=BATCH, project_id=PROJECT)
    again = draft(batch_id=BATCH, project_id=PROJECT)
    assert [record(first), record(first), record(again)] == [True, False, False]
    assert record_many([again, first, again]) == 0
    assert UsageEvent.objects.count() == 1
    assert batch_totals([BATCH])[BATCH].requests == 1
    assert UsageTotal.objects.filter(scope__startswith="project:").get().requests == 1


@pytest.mark.django_db
def test_a_second_attempt_and_a_late_answer_are_events_of_their_own() -> None:
    late = draft(batch_id=BATCH, number=1).as_late()
    record_many([draft(batch_id=BATCH, number=1), draft(batch_id=BATCH, number=2), late])
    assert UsageEvent.objects.count() == 3
    total = batch_totals([BATCH])[BATCH]
    assert (total.requests, total.cost_nanos, total.tokens["output"]) == (2, 3 * 540_000, 150)


@pytest.mark.django_db
def test_live_calls_have_no_batch_and_are_told_apart_by_their_id() -> None:
    one, two = (
        draft(source="live", batch_id=None, item_idx=None, project_id=PROJECT),
        draft(source="live", batch_id=None, item_idx=None, project_id=PROJECT),
    )
    assert record_many([one, two, one]) == 2
    assert record(one) is False
    assert UsageTotal.objects.get().requests == 2


@pytest.mark.django_db
def test_totals_tell_unpriced_events_from_free_ones() -> None:
    unsent = Outcome(
        target=Target(requested_model="nope"),
        failure=Failure(code=FailureCode.MODEL_NOT_FOUND, message="nope"),
    )
    drafts = [draft(batch_id=BATCH, item_idx=0), draft(batch_id=BATCH, item_idx=1, outcome=unreadable())]
    free = [draft(batch_id=BATCH, item_idx=idx, outcome=end) for idx, end in ((2, unsent), (3, refused()))]
    record_many([*drafts, *free])
    assert batch_totals([BATCH])[BATCH] == Total(
        currency="USD",
        requests=4,
        tokens={"input": 60, "cache_read": 40, "cache_write": 0, "output": 50},
        cost_nanos=540_000,
        unpriced=1,
    )
    failed = UsageEvent.objects.get(item_idx=2)
    assert (failed.status, failed.error_kind, failed.cost_nanos, failed.input) == (0, "model_not_found", 0, 0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("outcome", "known"),
    [
        (replace(ANSWERED, tokens=Tokens(input=10**12, output=0)), True),
        (replace(ANSWERED, tokens=Tokens(input=2**70, output=0)), False),
        (replace(ANSWERED, tokens=None), False),
    ],
)
def test_absurd_or_missing_token_counts_are_unknown_and_never_stop_the_settling(
    outcome: Outcome, known: bool
) -> None:
    made = draft(batch_id=BATCH, outcome=outcome)
    record(made)
    assert (made.input is not None) is known
    assert (UsageEvent.objects.get().input is not None) is known
    assert batch_totals([BATCH])[BATCH].unpriced == (0 if known else 1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("code", "status", "cost_nanos"),
    [
        ("upstream_status", 401, 0),
        ("upstream_status", 302, 0),
        ("upstream_status", 500, 0),
        # The host could not be reached for another try; what was sent before was answered, or broke off.
        ("upstream_unreachable", 500, 0),
        ("upstream_unreachable", 200, None),
        ("upstream_unreachable", 0, None),
        # The status is that of a key tried before.
        ("upstream_unreadable", 0, None),
        ("timeout", 429, None),
        ("cancelled", 401, None),
        ("worker_lost", 0, None),
    ],
)
def test_a_call_without_usage_is_free_when_all_it_got_was_a_refusal(
    code: str, status: int, cost_nanos: int | None
) -> None:
    made = draft(batch_id=BATCH, outcome=refused(status=status, code=code))
    assert (made.cost_nanos, made.input) == (cost_nanos, cost_nanos)


@pytest.mark.django_db
def test_a_total_may_be_larger_than_any_count_in_it() -> None:
    """Else it would be full one day, and no event of its batch or project could be saved any more."""
    record(draft(batch_id=BATCH, item_idx=0))
    UsageTotal.objects.update(input=2**63 - 1, output=2**63 - 1)
    record(draft(batch_id=BATCH, item_idx=1))
    tokens = batch_totals([BATCH])[BATCH].tokens
    assert (tokens["input"], tokens["output"]) == (2**63 + 59, 2**63 + 49)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("measured", "kept"), [(-1, 0), (0, 0), (2**31 - 1, 2**31 - 1), (2**31, 2**31 - 1), (10**15, 2**31 - 1)]
)
def test_a_duration_that_no_column_holds_is_the_longest_or_the_shortest(measured: int, kept: int) -> None:
    outcome = replace(ANSWERED, upstream_ms=measured)
    made = draft(batch_id=BATCH, outcome=outcome, duration_ms=measured)
    record(made)
    event = UsageEvent.objects.get()
    assert (event.duration_ms, event.upstream_ms) == (kept, kept)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["m" * 500, "a\0b", "\ud800", "ö" * 300])
def test_a_model_may_be_asked_for_by_any_text(name: str) -> None:
    record(draft(outcome=replace(ANSWERED, target=replace(TARGET, requested_model=name))))
    assert len(UsageEvent.objects.get().requested_model) == min(len(name), 300)


@pytest.mark.django_db
def test_a_price_list_in_another_currency_prices_nothing() -> None:
    euros = PriceList(name="euros", version=1, currency="EUR", rates=())
    made = draft(batch_id=BATCH, outcome=replace(ANSWERED, target=replace(TARGET, prices=euros)))
    assert (made.cost_nanos, made.currency, made.pricing) == (None, "USD", "euros@1")


@pytest.mark.django_db
def test_only_events_that_the_fence_names_are_saved() -> None:
    lost, settled = draft(batch_id=BATCH), draft(batch_id=BATCH)
    statement = f"WITH settled AS (SELECT %(settled)s::uuid AS event_id), {event_ctes(fence='settled')}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"{statement} SELECT count(*) FROM usage_event",
            {"settled": settled.id, **parameters([lost, settled])},
        )
        assert cursor.fetchone() == (1,)
    assert UsageEvent.objects.get().id == settled.id
    assert UsageTotal.objects.get(scope=f"batch:{BATCH}").requests == 1


@pytest.mark.django_db
def test_the_settling_statement_is_prepared_once_whatever_the_numbers_sizes() -> None:
    drafts = [draft(outcome=replace(ANSWERED, tokens=Tokens(input=n, output=0))) for n in (1, 10**5, 10**11)]
    assert {type(value) for made in drafts for value in parameters([made]).values()} == {str}


@pytest.mark.django_db
def test_totals_of_many_batches_take_one_query_and_name_each_batch(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    record_many([draft(batch_id=BATCH, item_idx=idx) for idx in range(3)])
    with django_assert_num_queries(1):
        totals = batch_totals([BATCH, PROJECT])
    assert totals[BATCH].cost_nanos == 3 * 540_000
    assert totals[PROJECT] == Total(currency="USD")


@pytest.mark.django_db
def test_forgetting_a_batch_leaves_its_events_and_its_projects_total() -> None:
    record(draft(batch_id=BATCH, project_id=PROJECT))
    delete_batch_total(BATCH)
    assert batch_totals([BATCH])[BATCH].requests == 0
    assert UsageEvent.objects.count() == 1
    event = UsageEvent.objects.get()
    assert UsageTotal.objects.get().scope == f"project:{PROJECT}:{event.at:%Y-%m}"


@pytest.mark.django_db(transaction=True)
def test_totals_are_exact_when_eight_threads_settle_the_same_batches_at_once() -> None:
    batches = [uuid.UUID(int=n) for n in range(1, 4)]
    start = threading.Barrier(8, timeout=30)

    def settle(thread: int) -> None:
        start.wait()
        for number in range(25):
            idx = thread * 25 + number
            drafts = [draft(batch_id=batch, item_idx=idx, project_id=PROJECT) for batch in batches]
            with transaction.atomic():
                record_many(drafts if thread % 2 else drafts[::-1])
            record_many(drafts[:1])
        connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(settle, range(8)))
    assert {total.requests for total in batch_totals(batches).values()} == {200}
    assert {total.cost_nanos for total in batch_totals(batches).values()} == {200 * 540_000}
    project = UsageTotal.objects.totals_by_scope(
        UsageTotal.objects.filter(scope__startswith="project:").values_list("scope", flat=True).distinct()
    )
    assert [sums["requests"] for sums in project.values()] == [600]
    assert UsageTotal.objects.filter(scope=f"batch:{batches[0]}").count() <= SHARDS
