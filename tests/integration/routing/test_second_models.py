"""An item with `model` and `Model`: servers written in Go take the last of the two, which no grant was checked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import Batch, BatchItem
from batches.publishing.publish import drain_publisher
from relaybatch.ids import uuid7
from tests.support.calls.collections import COLLECTIONS
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

    from tests.support.calls.collections import Collection
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = [b'"Model":"other"', b'"MODEL":null', b'"\\u004dodel":"other"', b'"mod\\u0045l" : "other"']


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


def executed(batch: Batch) -> BatchItem:
    item = BatchItem.objects.get(batch_id=batch.id)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    item.refresh_from_db()
    return item


def created(client: Client, catalog: SimpleNamespace, to: Collection, params: bytes) -> Batch:
    body = to.body(to.item("a", params))
    response = client.post(to.path, body, content_type="application/json", headers=catalog.headers)
    assert response.status_code == 200, response.content
    drain_publisher()
    return Batch.objects.get()


@pytest.mark.parametrize("second", SECOND)
def test_relay_refuses_them_at_submit_and_names_every_one(
    client: Client, catalog: SimpleNamespace, second: bytes
) -> None:
    good, bad = b'{"model":"echo-1"}', b'{"model":"echo-1",' + second + b"}"
    body = b'{"shape":"openai","requests":[' + b",".join([bad, good, bad]) + b"]}"
    response = client.post("/v1/batches", body, content_type="application/json", headers=catalog.headers)
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, "requests[0].model")
    assert "requests[2].model" in error["message"]
    assert "requests[1]" not in error["message"]
    assert not Batch.objects.exists()


@pytest.mark.parametrize("to", COLLECTIONS, ids=lambda one: one.name)
@pytest.mark.parametrize("second", SECOND)
def test_elsewhere_they_are_invalid_items_and_nothing_is_sent(
    client: Client, catalog: SimpleNamespace, upstream: Upstream, to: Collection, second: bytes
) -> None:
    params = b'{"model":"%b","messages":[],%b}' % (to.model.encode(), second)
    item = executed(created(client, catalog, to, params))
    assert (item.state, item.error_code, item.attempt) == ("discarded", "invalid_item", 1)
    assert "model is given twice" in item.error
    assert upstream.requests == []


@pytest.mark.parametrize("to", COLLECTIONS, ids=lambda one: one.name)
def test_other_doubles_and_nested_ones_travel_as_they_are(
    client: Client, catalog: SimpleNamespace, upstream: Upstream, to: Collection
) -> None:
    rest = b'"messages":[{"Model":1,"model":2}],"Stream":true,"seed":1,"seed":2,"x":"Model","models":["a"]'
    params = b'{"model":"%b",%b}' % (to.model.encode(), rest)
    item = executed(created(client, catalog, to, params))
    assert item.state == "completed"
    assert upstream.requests[0].body.endswith(rest + b"}")
