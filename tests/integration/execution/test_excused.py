"""An item whose upstream answers 401 or 403: that is taken to be about our host key, and the item goes on."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.utils import timezone

from batches.completion.cancel import cancel_batch
from batches.completion.expire import expire_batch
from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem, PolicyPause
from relaybatch.ids import uuid7
from routing.gate import breakers
from routing.gate.redis import client
from routing.upstream.send import send
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.catalog import make_catalog
from tests.support.rows.rate_limits import limit_host_key, select_keys
from tests.support.rows.submissions import submit
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from batches.models import Batch
    from routing.models import HostKey
    from tests.support.upstream.upstream import Answer, Request, Upstream

pytestmark = pytest.mark.django_db(transaction=True)

ONE_AN_HOUR = ("requests", 1, 3600, "token-bucket")


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url, host_key_values=("one", "two"))


@pytest.fixture
def lonely(upstream: Upstream) -> SimpleNamespace:
    """A catalog of one host key."""
    return make_catalog(upstream.url, host_key_values=("only",))


def answers_by_key(upstream: Upstream, **statuses: int) -> None:
    """200 is a usable answer."""

    def handler(request: Request) -> Answer:
        status = statuses[request.credential]
        return answers.usable() if status == 200 else answers.json({"error": "planted"}, status=status)

    upstream.handler = handler


def credentials(upstream: Upstream) -> list[str]:
    return [request.credential for request in upstream.requests]


def run(batch: Batch, idx: int = 0) -> BatchItem:
    """Runs the item if it is due; the row afterwards."""
    item = BatchItem.objects.get(batch_id=batch.id, idx=idx)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    item.refresh_from_db()
    return item


def run_when_due(batch: Batch) -> BatchItem:
    """As if the time had come: for the item, and for every breaker."""
    BatchItem.objects.filter(batch_id=batch.id, state="available").update(not_before=None)
    for key in client().scan_iter("rb:gate2:breaker:*"):
        client().hset(key, "until", 1)
    return run(batch)


def events(batch: Batch) -> list[tuple[int, int, str, int | None]]:
    found = UsageEvent.objects.filter(batch_id=batch.id).order_by("attempt")
    return list(found.values_list("attempt", "status", "error_kind", "cost_nanos"))


def seconds_to_wait(item: BatchItem) -> float:
    assert item.not_before
    return (item.not_before - timezone.now()).total_seconds()


def open_breaker(catalog: SimpleNamespace, upstream: Upstream, host_key: HostKey, status: int) -> None:
    """By a call that goes on with the other key."""
    value = "one" if host_key == catalog.host_keys[0] else "two"
    answers_by_key(upstream, **({"one": 200, "two": 200} | {value: status}))
    while breakers.breaker_states([host_key])[0].state == "closed":
        assert send(call_of(catalog)).failure is None


# The scenario that this is about


def test_a_refused_key_while_the_others_breaker_is_open_for_a_moment_costs_the_item_nothing(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    select_keys(catalog, "round-robin")
    open_breaker(catalog, upstream, catalog.host_keys[1], 503)
    answers_by_key(upstream, one=401, two=200)
    batch = submit(catalog, max_attempts=3, on_rate_limit="wait")
    item = run(batch)
    assert (item.state, item.error_code, item.waiting_reason) == ("available", "", "breaker_open")
    assert (item.attempt, item.excused) == (1, 1)
    assert 0 < seconds_to_wait(item) <= 2, "when the other key is half-open"
    assert (item.upstream_status, item.upstream_error) == (None, None)
    assert BatchItem.objects.item_counts([batch.id])[batch.id].waiting == {"breaker_open": 1}
    assert events(batch) == [(1, 401, "upstream_status", 0)]
    item = run_when_due(batch)
    assert (item.state, item.attempt, item.excused) == ("completed", 2, 1)
    assert events(batch)[1:] == [(2, 200, "", 540_000)]


def test_the_batch_that_does_not_wait_goes_on_with_the_other_key_too(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    """Though it has one attempt: what the upstream said is not about the item."""
    select_keys(catalog, "round-robin")
    open_breaker(catalog, upstream, catalog.host_keys[1], 503)
    answers_by_key(upstream, one=401, two=200)
    batch = submit(catalog, max_attempts=1, on_rate_limit="fail")
    item = run(batch)
    assert (item.state, item.attempt, item.excused) == ("available", 1, 1)
    assert run_when_due(batch).state == "completed"


def test_the_batch_that_does_not_wait_goes_on_when_the_other_keys_limit_has_room(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    limit_host_key(catalog.host_keys[1], ONE_AN_HOUR)
    select_keys(catalog, "least-recently-used")
    answers_by_key(upstream, one=200, two=200)
    for _ in range(2):
        send(call_of(catalog))
    answers_by_key(upstream, one=401, two=200)
    item = run(submit(catalog, max_attempts=1, on_rate_limit="fail"))
    assert (item.state, item.attempt, item.excused) == ("available", 1, 1)
    assert 3500 < seconds_to_wait(item) <= 3600


def test_of_four_keys_three_of_them_refused_the_fourth_is_tried_at_once(upstream: Upstream) -> None:
    four = make_catalog(upstream.url, host_key_values=("one", "two", "three", "four"))
    answers_by_key(upstream, one=401, two=403, three=401, four=200)
    batch = submit(four)
    item = run(batch)
    assert (item.state, item.waiting_reason, item.excused) == ("available", "breaker_open", 1)
    assert seconds_to_wait(item) <= 0
    assert not PolicyPause.objects.exists(), "there is a key for the next one"
    item = run(batch)
    assert (item.state, item.attempt) == ("completed", 2)
    assert credentials(upstream) == ["one", "two", "three", "four"]


def test_a_refused_key_with_a_healthy_one_beside_it_needs_no_excuse(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    answers_by_key(upstream, one=401, two=200)
    batch = submit(catalog)
    item = run(batch)
    assert (item.state, item.attempt, item.excused) == ("completed", 1, 0)
    assert events(batch) == [(1, 200, "", 540_000)]


# All keys refused


@pytest.mark.parametrize("status", [401, 403])
def test_with_every_key_refused_the_item_ends_at_once_when_its_batch_does_not_wait(
    catalog: SimpleNamespace, upstream: Upstream, status: int
) -> None:
    answers_by_key(upstream, one=status, two=status)
    batch = submit(catalog, max_attempts=3, on_rate_limit="fail")
    item = run(batch)
    assert (item.state, item.error_code, item.upstream_status) == ("discarded", "upstream_status", status)
    assert item.error == f"batch item: upstream status {status}"
    assert (item.attempt, item.excused) == (1, 0)
    assert b"planted" in bytes(item.upstream_error or b"")
    assert events(batch) == [(1, status, "upstream_status", 0)]


def test_a_key_that_was_refused_before_counts_as_refused(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    open_breaker(catalog, upstream, catalog.host_keys[0], 401)
    answers_by_key(upstream, one=401, two=401)
    item = run(submit(catalog, on_rate_limit="fail"))
    assert (item.state, item.upstream_status, item.excused) == ("discarded", 401, 0)


def test_a_waiting_batch_outlasts_its_only_key_being_refused_and_goes_on_when_it_heals(
    lonely: SimpleNamespace, upstream: Upstream
) -> None:
    answers_by_key(upstream, only=401)
    batch = submit(lonely, max_attempts=1, on_rate_limit="wait")
    waits = []
    for attempt in range(1, 6):
        item = run_when_due(batch)
        assert (item.state, item.attempt, item.excused) == ("available", attempt, attempt)
        waits.append(round(seconds_to_wait(item), -1))
    assert waits == [60, 300, 900, 3600, 3600]
    answers_by_key(upstream, only=200)
    item = run_when_due(batch)
    assert (item.state, item.attempt, item.excused) == ("completed", 6, 5)
    assert [cost for *_, cost in events(batch)] == [0, 0, 0, 0, 0, 540_000]


def test_403_is_excused_three_times(lonely: SimpleNamespace, upstream: Upstream) -> None:
    """It may be about the item: its region, its model."""
    answers_by_key(upstream, only=403)
    batch = submit(lonely, max_attempts=1, on_rate_limit="wait")
    seen = [(item.state, item.attempt, item.excused) for item in (run_when_due(batch) for _ in range(4))]
    assert seen == [("available", 1, 1), ("available", 2, 2), ("available", 3, 3), ("discarded", 4, 3)]
    item = BatchItem.objects.get(batch_id=batch.id)
    assert (item.error_code, item.upstream_status) == ("upstream_status", 403)
    assert events(batch) == [(attempt, 403, "upstream_status", 0) for attempt in (1, 2, 3, 4)]


def test_401s_between_use_up_none_of_the_403s_that_are_excused(
    lonely: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(lonely, max_attempts=1, on_rate_limit="wait")
    seen = []
    for status in (403, 401, 403, 401, 403, 401, 403):
        answers_by_key(upstream, only=status)
        seen.append(run_when_due(batch).state)
    assert seen == ["available"] * 6 + ["discarded"]


def test_excused_attempts_leave_the_others_as_many_as_there_were(
    lonely: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(lonely, max_attempts=2, on_rate_limit="wait")
    seen = []
    for status in (401, 500, 401, 500):
        answers_by_key(upstream, only=status)
        item = run_when_due(batch)
        seen.append((item.state, item.waiting_reason, item.attempt, item.excused))
    assert seen == [
        ("available", "breaker_open", 1, 1),
        ("available", "retry", 2, 1),
        ("available", "breaker_open", 3, 2),
        ("discarded", "", 4, 2),
    ]


# What else may become of an item that waits for a key


def test_an_excused_item_holds_its_policy_back_for_as_short_a_while_as_a_closed_gate_does(
    lonely: SimpleNamespace, upstream: Upstream
) -> None:
    answers_by_key(upstream, only=401)
    run(submit(lonely, on_rate_limit="wait"))
    pause = PolicyPause.objects.get()
    assert pause.reason == "breaker_open"
    assert timedelta(0) < pause.until - timezone.now() <= timedelta(seconds=2)


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_an_excused_item_expires_and_is_cancelled_as_any_other(
    lonely: SimpleNamespace, upstream: Upstream, end: str
) -> None:
    answers_by_key(upstream, only=401)
    batch = submit(lonely, on_rate_limit="wait", lifetime_seconds=30)
    item = run(batch)
    assert item.not_before == batch.expires_at, "it is due then, though the key is closed for longer"
    expire_batch(batch.id) if end == "expired" else cancel_batch(batch)
    item.refresh_from_db()
    assert (item.state, item.error_code, item.upstream_status) == (end, end, None)
    assert events(batch) == [(1, 401, "upstream_status", 0)]


def test_a_batch_cancelled_during_the_attempt_ends_an_item_that_would_have_been_excused(
    lonely: SimpleNamespace, upstream: Upstream
) -> None:
    batch = submit(lonely, on_rate_limit="wait")

    def handler(_: Request) -> Answer:
        cancel_batch(batch)
        connection.close()
        return answers.status(401)

    upstream.handler = handler
    item = run(batch)
    assert (item.state, item.error_code) == ("cancelled", "cancelled")
    assert events(batch) == [(1, 401, "cancelled", 0)]


# The line that an operator reads


def openings(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str, str, int]]:
    return [
        (record.levelname, record.host, record.host_key, record.status, record.seconds)  # type: ignore[attr-defined]
        for record in caplog.records
        if record.getMessage() == "breaker opened"
    ]


def test_a_breaker_that_opens_is_one_warning_with_host_key_status_and_time(
    catalog: SimpleNamespace, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = catalog.host_keys
    answers_by_key(upstream, one=401, two=503)
    with caplog.at_level(logging.WARNING, logger="routing"):
        for _ in range(3):
            send(call_of(catalog))
    assert openings(caplog) == [
        ("WARNING", catalog.host.name, one.name, "401", 60),
        ("WARNING", catalog.host.name, two.name, "503", 2),
    ]


def test_a_breaker_that_opens_again_by_its_probe_is_logged_again_for_the_longer_time(
    lonely: SimpleNamespace, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.handler = lambda _: answers.close()
    batch = submit(lonely, max_attempts=9)
    with caplog.at_level(logging.WARNING, logger="routing"):
        for _ in range(2):
            run_when_due(batch)
            run(batch)
    key = (lonely.host.name, lonely.host_keys[0].name, "connection lost")
    assert openings(caplog) == [("WARNING", *key, 2), ("WARNING", *key, 4)]
