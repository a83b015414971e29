"""A project's allowance: until when items are sent, what is counted towards it, and what its callers see."""

from __future__ import annotations

import functools
import json
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from batches.publishing.publish import drain_publisher
from relaybatch.db.clock import database_now
from relaybatch.ids import uuid7
from routing.credentials.recheck import Allowance, clear_cache
from routing.credentials.relay_keys import create_key
from routing.models import Project, User
from tests.support.calls.usage_calls import UNROUTED_OUTCOME
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.submissions import chat_body, publish_all, submit
from tests.support.rows.usage_rows import draft, refused, unreadable
from tests.support.run.races import run_concurrently
from tests.support.upstream import upstream_responses as answers
from usage.included_usage import MONTH_TOTALS_SQL, MonthUsage, allowance_failure, current_month_usage
from usage.ledger import record
from usage.models import UsageEvent, UsageTotal

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

    from batches.execution.claim import Claim
    from batches.models import Batch
    from routing.calls.call import Outcome
    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db(transaction=True)
COST = 540_000
PATH = "/v1/usage/included"
SPENT = "usage_limit_exceeded"


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


def allow(catalog: SimpleNamespace, nanos: int | None, *, unpriced_closes: bool = False) -> None:
    Project.objects.filter(id=catalog.project.id).update(
        included_nanos=nanos, included_currency="USD", unpriced_closes=unpriced_closes
    )
    clear_cache()


def runs_of(batch: Batch) -> list[functools.partial[Claim | None]]:
    items = BatchItem.objects.of(batch).values_list("id", flat=True)
    return [
        functools.partial(execute_item, item_id, in_flight=InFlightItems(uuid7(), slots=8))
        for item_id in items
    ]


def codes(batch: Batch) -> list[str]:
    """Of its items in their order, after each was executed in turn; empty for those that completed."""
    for run in runs_of(batch):
        run()
    return list(BatchItem.objects.of(batch).values_list("error_code", flat=True))


def included_usage_of(client: Client, headers: dict[str, str]) -> dict[str, Any]:
    response = client.get(PATH, headers=headers)
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = json.loads(response.content)
    return answer


def numbers(client: Client, headers: dict[str, str]) -> tuple[int | None, int | None, int | None]:
    answer = included_usage_of(client, headers)
    return answer["included_nanos"], answer["used_nanos"], answer["remaining_nanos"]


@pytest.mark.parametrize(
    ("included_nanos", "expected"),
    [
        (2 * COST, ["", "", SPENT, SPENT]),
        (2 * COST + 1, ["", "", "", SPENT]),
        (2 * COST - 1, ["", "", SPENT, SPENT]),
        (0, [SPENT] * 4),
        (None, [""] * 4),
    ],
)
def test_items_are_sent_until_what_is_settled_has_reached_the_allowance(
    catalog: SimpleNamespace, upstream: Upstream, included_nanos: int | None, expected: list[str]
) -> None:
    allow(catalog, included_nanos)
    batch = submit(catalog, *[chat_body()] * 4)
    assert codes(batch) == expected
    assert len(upstream.requests) == expected.count("")


def test_an_item_that_is_refused_is_final_and_its_event_says_that_nothing_was_sent(
    catalog: SimpleNamespace,
) -> None:
    allow(catalog, 0)
    batch = submit(catalog, max_attempts=3)
    assert codes(batch) == [SPENT]
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.attempt) == ("discarded", 1)
    assert "included usage" in item.error
    event = UsageEvent.objects.get()
    assert (event.status, event.error_kind, event.cost_nanos, event.keys_tried) == (0, SPENT, 0, 0)
    assert (event.project, event.policy) == (catalog.project.name, catalog.policy.name)
    assert (event.requested_model, event.model, event.provider) == ("echo-1", "echo-1", catalog.provider.name)


def test_where_the_call_would_go_is_found_first(catalog: SimpleNamespace) -> None:
    allow(catalog, 0)
    assert codes(submit(catalog, chat_body(model="no-such-model"))) == ["model_not_found"]


def test_over_http_the_rest_of_a_batch_is_discarded_with_the_code(
    client: Client, catalog: SimpleNamespace
) -> None:
    allow(catalog, 2 * COST)
    sent = b'{"shape":"openai","requests":[' + b",".join([chat_body()] * 4) + b"]}"
    accepted = client.post("/v1/batches", sent, content_type="application/json", headers=catalog.headers)
    drain_publisher()
    for item in BatchItem.objects.order_by("idx"):
        execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    path = f"/v1/batches/{json.loads(accepted.content)['id']}"
    status = json.loads(client.get(path, headers=catalog.headers).getvalue())
    assert (status["counts"], status["usage"]["cost_nanos"]) == ({"completed": 2, "discarded": 2}, 2 * COST)
    response = client.get(f"{path}/results?include=error_code", headers=catalog.headers)
    results = json.loads(response.getvalue())["results"]
    assert [result.get("error_code") for result in results] == [None, None, SPENT, SPENT]
    assert all("included usage" in result["error"] for result in results[2:])
    assert numbers(client, catalog.headers) == (2 * COST, 2 * COST, 0)


def test_last_months_usage_does_not_count(client: Client, catalog: SimpleNamespace) -> None:
    allow(catalog, COST)
    now = database_now().astimezone(UTC)
    last = f"{now.year - (now.month == 1)}-{(now.month - 2) % 12 + 1:02}"
    scope = f"project:{catalog.project.id}:{last}"
    UsageTotal.objects.create(scope=scope, shard=3, requests=9, cost_nanos=9 * COST)
    assert numbers(client, catalog.headers) == (COST, 0, COST)
    assert codes(submit(catalog, chat_body(), chat_body())) == ["", SPENT]


def test_another_project_is_not_touched(catalog: SimpleNamespace) -> None:
    allow(catalog, 0)
    assert codes(submit(make_caller(catalog))) == [""]


def test_what_is_in_flight_finishes_and_may_overshoot(
    client: Client, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    allow(catalog, 1)
    both_are_out = threading.Barrier(2, timeout=20)

    def answer_when_both_are_out(_: object) -> Answer:
        both_are_out.wait()
        return answers.usable()

    upstream.handler = answer_when_both_are_out
    run_concurrently(runs_of(submit(catalog, chat_body(), chat_body())))
    assert numbers(client, catalog.headers) == (1, 2 * COST, 0)
    assert codes(submit(catalog)) == [SPENT]
    assert len(upstream.requests) == 2


def test_eight_threads_add_up_exactly(client: Client, catalog: SimpleNamespace) -> None:
    allow(catalog, 100 * COST)
    batch = submit(catalog, *[chat_body()] * 40)
    publish_all(batch)
    runs = runs_of(batch)
    run_concurrently([functools.partial(run_all, runs[thread::8]) for thread in range(8)])
    assert numbers(client, catalog.headers) == (100 * COST, 40 * COST, 60 * COST)


def run_all(runs: list[functools.partial[Claim | None]]) -> None:
    for run in runs:
        run()


def test_a_late_answer_costs_and_an_unpriced_one_counts_nothing(
    client: Client, catalog: SimpleNamespace
) -> None:
    allow(catalog, 3 * COST)
    project_id = catalog.project.id
    record(draft(project_id=project_id).as_late())
    record(draft(project_id=project_id, outcome=unreadable()))
    record(draft(project_id=project_id, source="live", batch_id=None, item_idx=None))
    assert numbers(client, catalog.headers) == (3 * COST, 2 * COST, COST)


LIMIT = 100 * COST


@pytest.mark.parametrize("unpriced_closes", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        answers.json({"choices": []}),
        answers.json({"choices": [], "usage": {"prompt_tokens": 1.0, "completion_tokens": 1}}),
    ],
    ids=["no usage", "odd usage"],
)
def test_an_unpriced_event_closes_the_allowance_of_a_project_that_says_so(
    client: Client, catalog: SimpleNamespace, upstream: Upstream, answer: Answer, unpriced_closes: bool
) -> None:
    allow(catalog, LIMIT, unpriced_closes=unpriced_closes)
    upstream.script(answer)
    first = submit(catalog)
    codes(first)
    assert UsageEvent.objects.get().cost_nanos is None
    batch = submit(catalog)
    assert codes(batch) == [SPENT if unpriced_closes else ""]
    used = 0 if unpriced_closes else COST
    assert numbers(client, catalog.headers) == (LIMIT, used, 0 if unpriced_closes else LIMIT - COST)


def test_a_call_that_was_lost_closes_it_too(catalog: SimpleNamespace, upstream: Upstream) -> None:
    allow(catalog, LIMIT, unpriced_closes=True)
    upstream.script(answers.close())
    assert codes(submit(catalog)) == ["upstream_unreadable"]
    assert codes(submit(catalog)) == [SPENT]
    assert len(upstream.requests) == 1


def test_whoever_is_refused_for_it_is_told_why_and_what_mends_it(catalog: SimpleNamespace) -> None:
    allow(catalog, LIMIT, unpriced_closes=True)
    record(draft(project_id=catalog.project.id, outcome=unreadable()))
    batch = submit(catalog, max_attempts=3)
    assert codes(batch) == [SPENT]
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.state, item.attempt) == ("discarded", 1)
    assert item.error == (
        "the project's included usage is closed until the month ends (UTC): a call of it has no price, and "
        "unpriced_closes is set. Its operator adds what the price list lacks, and lifts unpriced_closes to open it"
    )
    refusal = UsageEvent.objects.get(batch_id=batch.id)
    assert (refusal.error_kind, refusal.cost_nanos) == (SPENT, 0)


def test_a_late_unpriced_answer_closes_it_too(catalog: SimpleNamespace) -> None:
    allow(catalog, LIMIT, unpriced_closes=True)
    record(draft(project_id=catalog.project.id, outcome=unreadable()).as_late())
    assert codes(submit(catalog)) == [SPENT]


@pytest.mark.parametrize("outcome", [refused(), UNROUTED_OUTCOME])
def test_what_cost_nothing_closes_nothing(client: Client, catalog: SimpleNamespace, outcome: Outcome) -> None:
    allow(catalog, LIMIT, unpriced_closes=True)
    record(draft(project_id=catalog.project.id, outcome=outcome))
    assert codes(submit(catalog)) == [""]
    assert numbers(client, catalog.headers) == (LIMIT, COST, LIMIT - COST)


def test_last_months_unpriced_use_closes_nothing(catalog: SimpleNamespace) -> None:
    allow(catalog, LIMIT, unpriced_closes=True)
    now = database_now().astimezone(UTC)
    last = f"{now.year - (now.month == 1)}-{(now.month - 2) % 12 + 1:02}"
    UsageTotal.objects.create(scope=f"project:{catalog.project.id}:{last}", shard=3, unpriced=9)
    assert codes(submit(catalog)) == [""]


def test_lifting_it_opens_the_allowance_again(catalog: SimpleNamespace) -> None:
    allow(catalog, LIMIT, unpriced_closes=True)
    record(draft(project_id=catalog.project.id, outcome=unreadable()))
    assert codes(submit(catalog)) == [SPENT]
    allow(catalog, LIMIT)
    assert codes(submit(catalog)) == [""]


def test_without_an_allowance_nothing_is_asked_of_the_database() -> None:
    connection.close()
    assert allowance_failure(project_id=uuid7(), allowance=None) is None
    assert allowance_failure(project_id=None, allowance=Allowance(nanos=0)) is None
    assert connection.connection is None


def test_a_month_is_read_by_its_key_alone(catalog: SimpleNamespace) -> None:
    record(draft(project_id=catalog.project.id))
    assert current_month_usage(catalog.project.id).used_nanos == COST
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {MONTH_TOTALS_SQL}", {"project": str(catalog.project.id)})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Cond" in plan


def test_a_caller_is_told_of_the_month_by_the_databases_clock(
    client: Client, catalog: SimpleNamespace
) -> None:
    allow(catalog, 50_000_000_000)
    month = MonthUsage(at=database_now(), used_nanos=0, unpriced=0)
    assert included_usage_of(client, catalog.headers) == {
        "period": month.period,
        "included_nanos": 50_000_000_000,
        "used_nanos": 0,
        "remaining_nanos": 50_000_000_000,
        "currency": "USD",
        "resets_at": f"{month.ends_at:%Y-%m-%d}T00:00:00.000Z",
    }


@pytest.mark.parametrize(
    ("at", "period", "ends_at"),
    [
        (
            datetime(2026, 11, 30, 23, 59, 59, 999_999, tzinfo=UTC),
            "2026-11",
            datetime(2026, 12, 1, tzinfo=UTC),
        ),
        (datetime(2026, 12, 1, tzinfo=UTC), "2026-12", datetime(2027, 1, 1, tzinfo=UTC)),
        (datetime.fromisoformat("2027-01-01T01:00:00+02:00"), "2026-12", datetime(2027, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_month_is_utcs(at: datetime, period: str, ends_at: datetime) -> None:
    month = MonthUsage(at=at, used_nanos=0, unpriced=0)
    assert (month.period, month.ends_at) == (period, ends_at)


def test_a_project_without_an_allowance_is_told_what_it_used(
    client: Client, catalog: SimpleNamespace
) -> None:
    record(draft(project_id=catalog.project.id))
    assert numbers(client, catalog.headers) == (None, COST, None)


def test_who_has_no_project_has_no_total(client: Client, catalog: SimpleNamespace) -> None:
    user = User.objects.create(username="alone", policy=catalog.policy)
    headers = {"Authorization": f"Bearer {create_key(principal=user).value}"}
    assert numbers(client, headers) == (None, None, None)


def test_unknown_parameters_are_named(client: Client, catalog: SimpleNamespace) -> None:
    response = client.get(f"{PATH}?period=2026-01", headers=catalog.headers)
    error = json.loads(response.content)["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "unknown_parameter", "period")


def test_nobody_is_told_without_a_credential(client: Client) -> None:
    assert client.get(PATH).status_code == 401
