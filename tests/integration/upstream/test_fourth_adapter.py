"""A fourth adapter, built as docs/vendors/adding-an-adapter.md says: the page's own code, run."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from relaybatch.ids import uuid7
from routing.adapters import ADAPTERS, Adapter
from routing.models import Binding, Model
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import submit
from tests.support.upstream import upstream_responses as answers
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = Path(__file__).parents[3] / "docs" / "vendors" / "adding-an-adapter.md"


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Adapter:
    """The adapter of the page, registered."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    adapter: Adapter = names["ADAPTER"]
    importlib.import_module(
        "relaybatch.urls"
    )  # what is made of the registry at import must not have this one
    monkeypatch.setitem(ADAPTERS, adapter.name, adapter)
    return adapter


@pytest.fixture
def catalog(upstream: Upstream, adapter: Adapter) -> SimpleNamespace:
    catalog = make_catalog(upstream.url)
    model = Model.objects.create(name="ours", provider=catalog.provider)
    Binding.objects.create(
        model=model, host=catalog.host, adapter=adapter.name, upstream_name="theirs", pricing=catalog.pricing
    )
    return catalog


def test_an_item_goes_through_it_and_is_priced(catalog: SimpleNamespace, upstream: Upstream) -> None:
    upstream.script(answers.json({"text": "hi", "usage": {"read": 100, "from_cache": 40, "written": 50}}))
    batch = submit(catalog, b'{"model": "ours", "ask": 1.0}', shape="example")
    item = BatchItem.objects.get(batch_id=batch.id)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    (request,) = upstream.requests
    assert (request.path, request.headers["x-example-key"]) == ("/v1/complete", "upstream-secret")
    assert request.body == b'{"model": "theirs", "ask": 1.0}'
    assert UsageEvent.objects.get().cost_nanos == 540_000


def test_an_error_in_place_of_a_response_is_recognized(catalog: SimpleNamespace, upstream: Upstream) -> None:
    upstream.script(answers.json({"error": "no"}))
    batch = submit(catalog, b'{"model": "ours"}', shape="example")
    item = BatchItem.objects.get(batch_id=batch.id)
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    item.refresh_from_db()
    assert item.error_code == "upstream_unreadable"


def test_a_submission_may_name_its_shape(catalog: SimpleNamespace, client: Any) -> None:
    body = json.dumps({"shape": "example", "requests": [{"model": "ours"}]})
    answer = client.post("/v1/batches", body, content_type="application/json", headers=catalog.headers)
    assert answer.status_code == 202
