"""The stores that every test of the contract runs with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batches.payloads.fallback import FallbackPayloads
from batches.payloads.opening import open_fallback_store, open_main_store

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

    from batches.payloads.store import PayloadStore
    from tests.support.servers.object_server import ObjectServer

KINDS = ("directory", "file", "postgres", "s3", "fallback")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> str:
    """The settings choose a new store of this kind."""
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "payloads")
    if request.param == "file":
        settings.RELAY_BATCH_PAYLOAD_URL = (tmp_path / "payloads by url").as_uri()
    elif request.param in ("s3", "fallback"):
        server: ObjectServer = request.getfixturevalue("object_server")
        settings.RELAY_BATCH_PAYLOAD_URL = server.new_bucket()
    elif request.param == "postgres":
        settings.RELAY_BATCH_PAYLOAD_URL = "postgres:"
    if request.param == "fallback":
        settings.RELAY_BATCH_PAYLOAD_FALLBACK_URL = "postgres:"
    return str(request.param)


@pytest.fixture
def store(kind: str) -> PayloadStore:
    fallback = open_fallback_store()
    return FallbackPayloads(open_main_store(), fallback) if fallback else open_main_store()
