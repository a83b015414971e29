"""A process that could not decrypt what is stored exits at its start and says why."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment

pytestmark = pytest.mark.django_db(transaction=True)

WRONG = base64.b64encode(b"another key".ljust(32)).decode()
ANY_PORT = "--bind=127.0.0.1:0 --workers=1"


@pytest.mark.parametrize("master_key", ["", WRONG], ids=["missing", "wrong"])
@pytest.mark.parametrize("name", ["web", "worker", "sweeper"])
def test_no_process_starts_without_the_key_of_what_is_stored(
    deployment: Deployment, catalog: SimpleNamespace, name: str, master_key: str
) -> None:
    process = deployment.start(name, RELAY_MASTER_KEY=master_key, GUNICORN_CMD_ARGS=ANY_PORT)
    wait_until(lambda: not process.is_alive, process.log)
    assert f"host key {catalog.host_keys[0].name}: " in process.log()
    assert "RELAY_MASTER_KEY" in process.log()
    assert "Traceback" not in process.log()
