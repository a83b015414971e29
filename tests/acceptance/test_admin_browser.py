"""The admin in a real browser: an operator logs in and opens batches, an item and usage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from routing.models import User
from tests.support.rows.admin_rows import ANSWER, make_admin_rows
from tests.support.servers.browser import INSTALLED, browser
from tests.support.servers.deployment import wait_until
from tests.support.servers.web import web_process

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.servers.browser import Browser

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not INSTALLED, reason="no browser: apt-get install chromium chromium-driver"),
]


@pytest.fixture
def artefacts(tmp_path: Path) -> Path:
    """Folder of the screenshots: RELAYBATCH_ARTEFACTS, else the test's own folder."""
    folder = Path(os.environ.get("RELAYBATCH_ARTEFACTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_an_operator_looks_at_batches_an_item_and_usage(tmp_path: Path, artefacts: Path) -> None:
    world = make_admin_rows()
    User.objects.create_superuser(username="owner", password="a long password")
    with web_process(tmp_path) as web, browser(tmp_path) as chromium:
        log_in(chromium, web.origin)
        for name, path, text in pages(world):
            chromium.open(f"{web.origin}{path}")
            wait_until(chromium.is_filled, lambda: chromium.text("body"))
            assert text.lower() in chromium.text("body").lower(), name  # styles may show capitals
            assert chromium.console_errors() == [], name
            chromium.screenshot(artefacts / f"{name}.png")
        chromium.open(f"{web.origin}/admin/batches/batch/")
        chromium.click("#result_list th a")
        assert chromium.text(".items h2") == "Items"
        assert chromium.console_errors() == []


def log_in(chromium: Browser, origin: str) -> None:
    chromium.open(f"{origin}/admin/")
    assert "Relaybatch" in chromium.title
    chromium.type("#id_username", "owner")
    chromium.type("#id_password", "a long password")
    chromium.click("input[type=submit]")
    assert "Overview" in chromium.text("#content")


def pages(world: SimpleNamespace) -> list[tuple[str, str, str]]:
    """`(name, path, text on the page)`."""
    batch, item = world.ended_batch.id, world.items[0].id
    return [
        ("front", "/admin/", "Catalog"),
        ("batches", "/admin/batches/batch/", "1 completed, 1 discarded"),
        ("batch", f"/admin/batches/batch/{batch}/change/", "batch item: upstream status 400"),
        ("items", "/admin/batches/batchitem/", "upstream_status"),
        ("item", f"/admin/batches/batchitem/{item}/change/", "Request and response"),
        ("payloads", f"/admin/batches/batchitem/{item}/payloads/", ANSWER),
        ("usage", "/admin/usage/usageevent/", "0.00054 USD"),
        ("relay_key", f"/admin/routing/relaykey/{world.relay_key.id}/change/", "Rotate"),
        ("pricing", f"/admin/routing/pricing/{world.pricing.id}/change/", "Per million"),
        ("policy", f"/admin/routing/policy/{world.policy.id}/change/", "Grants"),
        ("host_key", f"/admin/routing/hostkey/{world.host_keys[0].pk}/change/", "stored, encrypted"),
        ("workers", "/admin/batches/worker/", "here:4711"),
    ]
