"""Items of the shape `openai_embeddings`, from their rows to the upstream and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem, ItemResponse
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import submit
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Answer, Upstream

pytestmark = pytest.mark.django_db(transaction=True)

SHAPE = "openai_embeddings"
BODY = b'{ "model": "echo-1-embeddings", "input": ["\\u0000 hi", [1, 2]], "dimensions": 2, "x": 1.0 }'
TWO_DOLLARS = 2_000_000_000
VECTORS = [{"object": "embedding", "index": 0, "embedding": [0.6, -0.8]}]


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    """Its price list has a rate for `input` and no other."""
    return make_catalog(upstream.url, rates={"input": TWO_DOLLARS})


def run(catalog: SimpleNamespace, body: bytes = BODY) -> BatchItem:
    batch = submit(catalog, body, shape=SHAPE)
    item = BatchItem.objects.get(batch_id=batch.id)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    return BatchItem.objects.get(id=item.id)


def of_usage(usage: Any) -> Answer:
    return answers.json({"object": "list", "data": VECTORS, "usage": usage})


def test_an_item_is_sent_byte_for_byte_and_its_answer_stored(
    catalog: SimpleNamespace, upstream: Upstream
) -> None:
    item = run(catalog)
    (request,) = upstream.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/embeddings", BODY)
    assert request.headers["authorization"] == "Bearer upstream-secret"
    assert item.state == "completed"
    stored = ItemResponse.objects.get(item_id=item.id).body
    assert json.loads(bytes(stored)) == answers.EMBEDDINGS


def test_its_usage_is_input_alone_and_a_rate_for_input_prices_it(catalog: SimpleNamespace) -> None:
    run(catalog)
    event = UsageEvent.objects.get()
    assert (event.adapter, event.model, event.status) == (SHAPE, "echo-1-embeddings", 200)
    assert (event.input, event.output, event.cache_read, event.cache_write) == (100, 0, 0, 0)
    assert event.cost_nanos == 200_000
    assert event.cost_breakdown == {"input": 200_000}


def test_only_the_models_name_changes_on_the_way(catalog: SimpleNamespace, upstream: Upstream) -> None:
    catalog.models[SHAPE].bindings.update(upstream_name="vendor/embed")
    run(catalog)
    (request,) = upstream.requests
    assert request.body == BODY.replace(b"echo-1-embeddings", b"vendor/embed")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"total_tokens": 100},
        {"prompt_tokens": None},
        {"prompt_tokens": -1},
        {"prompt_tokens": 1.0},
        {"prompt_tokens": "100", "total_tokens": "100"},
        [100],
        "100",
    ],
    ids=repr,
)
def test_an_odd_usage_leaves_a_completed_item_unpriced(
    catalog: SimpleNamespace, upstream: Upstream, usage: Any
) -> None:
    upstream.script(of_usage(usage))
    assert run(catalog).state == "completed"
    event = UsageEvent.objects.get()
    assert (event.input, event.cost_nanos) == (None, None)


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        ({"error": {"message": "no", "type": "server_error"}}, "discarded", "upstream_unreadable"),
        ({"error": {"message": "no"}, "choices": []}, "discarded", "upstream_unreadable"),
        ({"error": None, "data": VECTORS}, "completed", ""),
        ({"error": {"message": "one of two"}, "data": VECTORS}, "completed", ""),
        ({"object": "list"}, "completed", ""),
        ({"data": None}, "completed", ""),
        ([{"data": VECTORS}], "discarded", "upstream_unreadable"),
    ],
    ids=repr,
)
def test_an_answer_is_known_by_its_data(
    catalog: SimpleNamespace, upstream: Upstream, answer: Any, state: str, code: str
) -> None:
    upstream.script(answers.json(answer))
    item = run(catalog)
    assert (item.state, item.error_code) == (state, code)


def test_an_upstreams_refusal_is_kept(catalog: SimpleNamespace, upstream: Upstream) -> None:
    upstream.script(answers.status(400))
    item = run(catalog)
    assert (item.state, item.error_code, item.upstream_status) == ("discarded", "upstream_status", 400)
    assert UsageEvent.objects.get().cost_nanos == 0


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "echo-1-embeddings", "input": "hi", "stream": true}',
        b'{"input": "hi"}',
        b'{"model": "echo-1-embeddings", "Model": "other", "input": "hi"}',
    ],
)
def test_what_no_shape_could_send_is_invalid(
    catalog: SimpleNamespace, upstream: Upstream, body: bytes
) -> None:
    assert run(catalog, body).error_code == "invalid_item"
    assert upstream.requests == []


def test_a_model_without_an_embeddings_binding_is_cross_shape(catalog: SimpleNamespace) -> None:
    assert run(catalog, b'{"model": "echo-1", "input": "hi"}').error_code == "cross_shape"


@pytest.mark.parametrize("shape", [SHAPE, "canonical", "generate"])
def test_relays_dialect_refuses_it_as_a_shape(catalog: SimpleNamespace, shape: str) -> None:
    body = json.dumps({"shape": shape, "requests": [json.loads(BODY)]})
    answer = Client().post("/v1/batches", body, content_type="application/json", headers=catalog.headers)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("unknown_shape", "shape")
    assert error["message"] == "`shape` must be one of openai, openai_responses, anthropic."
