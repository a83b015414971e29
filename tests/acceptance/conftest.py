from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import redis
from django.conf import settings

from tests.support.rows.catalog import make_catalog
from tests.support.servers.deployment import Deployment
from tests.support.servers.web import web_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream


@pytest.fixture
def catalog(transactional_db: None, upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


@pytest.fixture
def deployment(transactional_db: None, tmp_path: Path) -> Iterator[Deployment]:
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.flushdb()
    client.close()
    with Deployment(tmp_path) as deployment:
        yield deployment


@pytest.fixture
def web(transactional_db: None, tmp_path: Path) -> Iterator[Web]:
    """A web process that ends before the tables are truncated."""
    with web_process(tmp_path) as web:
        yield web
