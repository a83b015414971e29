"""Usage in the admin: the events chosen, what they add up to, and their charts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from routing.models import User
from tests.support.rows.admin_rows import logged_in_client, make_admin_rows, owner_client, viewer_client
from tests.support.rows.usage_rows import draft
from usage.ledger import record_many
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
EVENTS = "/admin/usage/usageevent/"


@pytest.fixture
def world() -> SimpleNamespace:
    return make_admin_rows()


def listed(client: Client, **query: Any) -> Any:
    return client.get(EVENTS, query).context["cl"]


def report(client: Client, **query: Any) -> Any:
    return client.get(f"{EVENTS}totals/", query).context["report"]


def test_the_list_has_the_totals_of_what_is_chosen(world: SimpleNamespace) -> None:
    client = owner_client()
    assert report(client).figures == {
        "Requests": "2",
        "Errors": "1",
        "Tokens in": "100",
        "Tokens out": "50",
        "Cost": "0.00054 USD",
        "Unpriced": "0",
    }
    UsageEvent.objects.filter(status=429).update(cost_nanos=None)
    assert report(client).figures["Unpriced"] == "1"
    assert report(client, status_class="2xx").figures["Requests"] == "1"
    assert report(client, model="nothing").figures["Cost"] == "0.00 USD"


def test_the_charts_have_a_bar_for_each_interval_with_events(world: SimpleNamespace) -> None:
    UsageEvent.objects.filter(status=429).update(at=timezone.now() - timedelta(hours=5))
    requests, cost = report(owner_client()).charts
    assert [len(chart.bars) for chart in (requests, cost)] == [2, 2]
    assert (requests.max_value, cost.max_value) == ("1", "0.00054")
    earlier, later = requests.bars
    assert (earlier.height, earlier.marked_height) == ("120.00", "120.00"), "the earlier one failed"
    assert (later.height, later.marked_height) == ("120.00", "0.00")
    assert float(earlier.x) < float(later.x)


def test_a_day_is_shown_unless_another_time_is_chosen(world: SimpleNamespace) -> None:
    UsageEvent.objects.update(at=timezone.now() - timedelta(days=3))
    client = owner_client()
    assert len(listed(client).result_list) == 0
    assert len(listed(client, since="7d").result_list) == 2
    assert len(listed(client, since="nonsense").result_list) == 0


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"source": "batch"}, 2),
        ({"source": "live"}, 0),
        ({"status_class": "4xx"}, 1),
        ({"error_kind": "upstream_status"}, 1),
        ({"model": "gpt-4o"}, 2),
        ({"model": "gpt"}, 0),
        ({"host": "openai-eu", "project": "search"}, 2),
    ],
)
def test_events_are_narrowed(world: SimpleNamespace, query: dict[str, str], count: int) -> None:
    assert len(listed(owner_client(), **query).result_list) == count


def test_the_list_needs_as_many_queries_for_many_events_as_for_few(
    world: SimpleNamespace, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    record_many([draft() for _ in range(150)])
    client = owner_client()
    with django_assert_max_num_queries(7):
        assert len(listed(client).result_list) == 100


def test_the_totals_come_in_one_query_of_a_page_or_of_a_part_of_one(
    world: SimpleNamespace, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = owner_client()
    with django_assert_max_num_queries(3):
        part = client.get(f"{EVENTS}totals/", headers={"X-Requested-With": "fetch"}).content.decode()
    assert part.strip().startswith("<div")
    page = client.get(f"{EVENTS}totals/").content.decode()
    assert page.startswith("<!DOCTYPE html>")
    assert f'data-fill="{EVENTS}totals/?since=7d"' in client.get(EVENTS, {"since": "7d"}).content.decode()


def test_the_totals_are_for_those_who_may_see_the_events(world: SimpleNamespace) -> None:
    assert viewer_client().get(f"{EVENTS}totals/").status_code == 200
    assert Client().get(f"{EVENTS}totals/").status_code == 302
    nobody = User.objects.create_user(username="nobody", is_staff=True)
    assert logged_in_client(nobody).get(f"{EVENTS}totals/").status_code == 403
    assert owner_client().get(f"{EVENTS}totals/", {"owner__startswith": "a"}).status_code == 400
