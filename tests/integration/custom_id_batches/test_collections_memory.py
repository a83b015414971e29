"""The web process's memory while it takes, or refuses, submissions of a hundred megabytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from batches.models import BatchItem
from bench.measurements import Memory
from tests.support.calls.collections import CHAT, MESSAGES
from tests.support.rows.catalog import make_catalog
from tests.support.servers.web import web_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.calls.collections import Collection
    from tests.support.servers.web import Web

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.endurance]
ITEMS, ITEM_BYTES = 1000, 102_400


@pytest.fixture
def web(tmp_path: Path, transactional_db: None) -> Iterator[Web]:
    """Of its own, with the settings' defaults, and used to a small submission."""
    with web_process(tmp_path) as web:
        yield web


def large(to: Collection) -> bytes:
    params = b'{"model":"%b","t":"%b"}' % (to.model.encode(), b"x" * (ITEM_BYTES - 40))
    return to.body(*[to.item(str(number), params) for number in range(ITEMS)])


def post(web: Web, rows: SimpleNamespace, to: Collection, body: bytes) -> tuple[int, int]:
    """Status, and by how much the process grew meanwhile."""
    memory = Memory(psutil.Process(web.process.pid).children()[0].pid)
    memory.begin()
    status = web.call("POST", to.path, headers=rows.headers, body=body).status
    growth = memory.growth_bytes()
    if growth is None:
        pytest.skip("the system does not tell a process's peak")
    return status, growth


def test_a_thousand_items_of_100_kb_take_twice_the_bodys_size_at_most_and_give_it_back(web: Web) -> None:
    rows = make_catalog("http://127.0.0.1:9")
    growths = {}
    for to in (CHAT, MESSAGES):
        assert post(web, rows, to, to.body())[0] == 200
        body = large(to)
        status, growths[to.name] = post(web, rows, to, body)
        assert status == 200
        assert growths[to.name] < 2 * len(body)
    # Nothing of the first was still there when the second came, or it would not have needed as much again.
    assert growths["messages"] > 0.8 * len(body)
    assert BatchItem.objects.count() == 2 * (ITEMS + 1)


@pytest.mark.parametrize("element", [b"1", b"{}", b'""'])
def test_a_body_of_countless_little_items_is_refused_without_making_a_value_of_each(
    web: Web, element: bytes
) -> None:
    rows = make_catalog("http://127.0.0.1:9")
    body = b'{"requests":[' + b",".join([element] * (30_000_000 // (len(element) + 1))) + b"]}"
    for to in (CHAT, MESSAGES):
        status, growth = post(web, rows, to, body)
        assert status == 400
        assert growth < 2 * len(body)
