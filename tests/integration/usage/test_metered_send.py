"""A metered call over a real socket: whatever comes of it, its event says what it used and cost."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from routing.credentials.recheck import CallerSnapshot
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.catalog import make_catalog
from tests.support.upstream import upstream_responses as answers
from usage.events import Attempt
from usage.ledger import record
from usage.metered_send import Metered, metered_send
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from routing.calls.call import Call
    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db
STANDING = CallerSnapshot(policy="a policy", project="a project", team="a team")


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    prices = {"input": 2_000_000_000, "cache_read": 500_000_000, "output": 8_000_000_000}
    return make_catalog(upstream.url, rates=prices)


def metered(call: Call) -> Metered:
    batch_id = uuid.uuid4()
    attempt = Attempt(source="batch", batch_id=batch_id, public_batch_id=str(batch_id), item_idx=0)
    return metered_send(call=call, caller_snapshot=STANDING, attempt=attempt, started=time.monotonic())


def test_an_answered_call_is_priced_and_its_event_can_be_saved(catalog: SimpleNamespace) -> None:
    result = metered(call_of(catalog))
    assert result.outcome.failure is None
    assert result.event.cost_nanos == 540_000
    assert (result.event.policy, result.event.project, result.event.team) == (
        "a policy",
        "a project",
        "a team",
    )
    assert result.event.duration_ms >= result.event.upstream_ms
    assert UsageEvent.objects.count() == 0
    record(result.event)
    assert UsageEvent.objects.get().host_key == catalog.host_keys[0].name


def test_a_failed_attempt_that_reported_usage_costs_money(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    upstream.script(answers.json({"error": {"message": "no"}, "usage": usage}, status=400))
    event = metered(call_of(catalog)).event
    assert (event.status, event.error_kind, event.cost_nanos) == (400, "upstream_status", 60_000)


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 429, 500, 529])
def test_an_attempt_that_was_refused_without_usage_cost_nothing(
    upstream: Upstream, catalog: SimpleNamespace, status: int
) -> None:
    upstream.script(answers.status(status))
    event = metered(call_of(catalog)).event
    assert (event.status, event.error_kind) == (status, "upstream_status")
    assert (event.input, event.output, event.cost_nanos) == (0, 0, 0)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (None, 0),
        ({}, 0),
        ({"prompt_tokens": 0, "completion_tokens": 0}, 0),
        ({"prompt_tokens": None, "completion_tokens": 5}, None),
        ({"prompt_tokens": 12.0, "completion_tokens": 5}, None),
        ({"cost": 0.25}, None),
    ],
)
def test_a_refusal_that_tells_of_use_in_no_way_we_can_count_is_unpriced(
    upstream: Upstream, catalog: SimpleNamespace, usage: Any, cost: int | None
) -> None:
    upstream.script(answers.json({"error": "no", "usage": usage}, status=400))
    event = metered(call_of(catalog)).event
    assert (event.status, event.error_kind, event.cost_nanos) == (400, "upstream_status", cost)


@pytest.mark.parametrize(
    "earlier",
    [
        answers.close(),
        answers.cut_short(b"{}"),
        answers.json({"usage": {"prompt_tokens": 100, "completion_tokens": 5}}, status=500),
    ],
    ids=["lost", "cut", "used something"],
)
def test_a_refusal_after_a_key_whose_request_may_have_cost_something_is_unpriced(
    upstream: Upstream, earlier: Answer
) -> None:
    catalog = make_catalog(upstream.url, host_key_values=("one-secret", "two-secret"))
    upstream.script(earlier, answers.status(429))
    event = metered(call_of(catalog)).event
    assert (event.status, event.keys_tried) == (429, 2)
    assert (event.input, event.output, event.cost_nanos) == (None, None, None)


def test_a_refusal_after_another_keys_cost_nothing(upstream: Upstream) -> None:
    catalog = make_catalog(upstream.url, host_key_values=("one-secret", "two-secret"))
    upstream.script(answers.status(500), answers.status(429))
    event = metered(call_of(catalog)).event
    assert (event.status, event.keys_tried, event.cost_nanos) == (429, 2, 0)


@pytest.mark.parametrize(
    ("answer", "error_kind"),
    [
        (answers.json({"choices": []}), ""),
        (answers.json({"error": "in 200"}), "upstream_unreadable"),
        (answers.html(), "upstream_unreadable"),
        (answers.cut_short(b"{}"), "upstream_unreadable"),
        (answers.close(), "upstream_unreadable"),
        (answers.hang(), "timeout"),
    ],
)
def test_what_may_have_been_answered_without_our_hearing_of_usage_is_unpriced(
    upstream: Upstream, catalog: SimpleNamespace, answer: Answer, error_kind: str
) -> None:
    upstream.script(answer)
    event = metered(call_of(catalog, seconds=0.5 if error_kind == "timeout" else 20)).event
    assert (event.error_kind, event.input, event.cost_nanos) == (error_kind, None, None)


def test_a_time_out_after_another_key_was_refused_is_unpriced(upstream: Upstream) -> None:
    two = make_catalog(upstream.url, host_key_values=("one", "two"))
    upstream.script(answers.status(429), answers.hang())
    event = metered(call_of(two, seconds=0.5)).event
    assert (event.error_kind, event.keys_tried, event.cost_nanos) == ("timeout", 2, None)


def test_what_a_refused_key_said_of_its_use_is_no_price_of_a_call_that_then_timed_out(
    upstream: Upstream,
) -> None:
    two = make_catalog(upstream.url, host_key_values=("one", "two"))
    said = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.5}
    upstream.script(answers.json({"error": "no", "usage": said}, status=429), answers.hang())
    event = metered(call_of(two, seconds=2.0)).event
    assert (event.error_kind, event.keys_tried) == ("timeout", 2)
    assert (event.input, event.cost_nanos, event.upstream_cost_nanos) == (None, None, None)


@pytest.mark.parametrize("reason", ["cancelled", "worker_lost"])
def test_a_call_that_is_cut_while_it_is_out_is_unpriced(
    upstream: Upstream, catalog: SimpleNamespace, reason: str
) -> None:
    upstream.script(answers.hang())
    call = call_of(catalog)
    with ThreadPoolExecutor(1) as threads:
        cut = threads.submit(cut_once_out, upstream, call, reason)
        event = metered(call).event
        cut.result(timeout=20)
    assert (event.error_kind, event.status, event.cost_nanos) == (reason, 0, None)


def cut_once_out(upstream: Upstream, call: Call, reason: str) -> None:
    upstream.wait_for(lambda up: up.in_flight == 1)
    call.abort_handle.abort(reason)


def test_a_meter_without_a_rate_makes_the_event_unpriced(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cache_write_tokens": 4}}
    upstream.script(answers.json({"choices": [], "usage": usage}))
    event = metered(call_of(catalog)).event
    assert (event.cache_write, event.cost_nanos, event.cost_breakdown) == (4, None, {})


def test_usage_beyond_belief_in_a_refusal_is_unpriced(upstream: Upstream, catalog: SimpleNamespace) -> None:
    usage = {"prompt_tokens": 10**13, "completion_tokens": 5}
    upstream.script(answers.json({"error": {"message": "no"}, "usage": usage}, status=400))
    assert metered(call_of(catalog)).event.cost_nanos is None


def test_a_call_that_was_never_sent_cost_nothing(upstream: Upstream, catalog: SimpleNamespace) -> None:
    event = metered(call_of(catalog, body=b'{"model":"no-such-model"}')).event
    assert upstream.requests == []
    assert (event.status, event.error_kind, event.requested_model) == (0, "model_not_found", "no-such-model")
    assert (event.input, event.cost_nanos, event.keys_tried) == (0, 0, 0)
