"""What an upstream says that a call cost: kept beside our own price, in every place that shows an event."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from relaybatch.ids import uuid7
from tests.support.rows.admin_rows import owner_client
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.upstream import upstream_responses as answers
from tests.unit.routing.adapters.test_vendor_usage import documented_usage
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db(transaction=True)
OPENROUTER_COST = 950_000_000


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


def of_vendor(vendor: str) -> Answer:
    usage = documented_usage(vendor)
    return answers.body(f'{{"choices": [], "content": [], "usage": {usage}}}'.encode())


def event_of(
    catalog: SimpleNamespace, upstream: Upstream, answer: Answer, *, shape: str = "openai"
) -> UsageEvent:
    """Of one item that the upstream answers so."""
    upstream.script(answer)
    model = "echo-1-messages" if shape == "anthropic" else "echo-1"
    batch = submit(catalog, chat_body(model=model), shape=shape)
    item = BatchItem.objects.get(batch_id=batch.id)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    return UsageEvent.objects.get(batch_id=batch.id)


@pytest.mark.parametrize(
    ("vendor", "shape", "nanos", "upstream_nanos"),
    [
        ("DeepSeek", "openai", 480_000, None),
        ("xAI", "openai", 600_000, 600_000),
        ("Gemini", "openai", 522_000, None),
        ("OpenRouter", "openai", 454_000, OPENROUTER_COST),
        ("Perplexity", "openai", 626_846_000, 630_606_000),
        ("Anthropic", "anthropic", 54_744_000, None),
    ],
)
def test_a_vendors_answer_is_priced_by_our_list_and_its_own_cost_kept_beside_it(
    catalog: SimpleNamespace,
    upstream: Upstream,
    vendor: str,
    shape: str,
    nanos: int,
    upstream_nanos: int | None,
) -> None:
    event = event_of(catalog, upstream, of_vendor(vendor), shape=shape)
    assert (event.error_kind, event.cost_nanos, event.upstream_cost_nanos) == ("", nanos, upstream_nanos)


@pytest.mark.parametrize(
    ("answer", "status", "cost", "upstream_cost"),
    [
        (answers.json({"choices": [], "usage": {"cost": 0.25}}), 200, None, 250_000_000),
        (answers.json({"error": "no", "usage": {"cost": 0.25}}, status=400), 400, None, 250_000_000),
        (answers.json({"error": "no", "usage": {"cost": 0.25}}), 200, None, 250_000_000),
        (answers.json({"error": "no", "usage": {"cost": -1}}, status=400), 400, None, None),
    ],
)
def test_it_is_kept_of_failed_attempts_and_where_the_tokens_are_unknown(
    catalog: SimpleNamespace,
    upstream: Upstream,
    answer: Answer,
    status: int,
    cost: int | None,
    upstream_cost: int | None,
) -> None:
    event = event_of(catalog, upstream, answer)
    assert (event.status, event.cost_nanos, event.upstream_cost_nanos) == (status, cost, upstream_cost)


def test_it_is_shown_as_json_and_csv_and_to_the_admin_and_added_to_no_total(
    client: Client, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    event = event_of(catalog, upstream, of_vendor("OpenRouter"))
    events = get_json(client, catalog, "/v1/usage/events")["events"]
    assert [each["upstream_cost_nanos"] for each in events] == [OPENROUTER_COST]
    file = client.get("/v1/usage/events?format=csv", headers=catalog.headers)
    (row,) = csv.DictReader(io.StringIO(file.getvalue().decode()))
    assert row["upstream_cost_nanos"] == "950000000"
    page = owner_client().get(f"/admin/usage/usageevent/{event.id}/change/").content.decode()
    assert "0.95 USD" in page
    assert get_json(client, catalog, "/v1/usage/included")["used_nanos"] == 454_000
    assert get_json(client, catalog, "/v1/usage/summary")["rows"][0]["cost_nanos"] == 454_000


def get_json(client: Client, catalog: SimpleNamespace, path: str) -> Any:
    return json.loads(client.get(path, headers=catalog.headers).content)
