"""`/docs` in a real browser, under its Content-Security-Policy, on a phone and on a desk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.servers.browser import INSTALLED, browser
from tests.support.servers.deployment import wait_until
from tests.support.servers.web import web_process

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not INSTALLED, reason="no browser: apt-get install chromium chromium-driver"),
]
WIDTHS = (390, 1400)
# Elements that reach over the right edge, unless something around them scrolls.
OVERFLOWING = """
const right = document.documentElement.clientWidth;
const scrolls = element =>
  element && (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
return [...document.querySelectorAll("#docs *")]
  .filter(each => each.getBoundingClientRect().right > right + 1 && !scrolls(each.parentElement))
  .map(each => `${each.tagName}.${each.className}`).slice(0, 20);
"""


def test_the_page_shows_every_route_and_fits_its_window(tmp_path: Path) -> None:
    artefacts = Path(os.environ.get("RELAYBATCH_ARTEFACTS") or tmp_path)
    with web_process(tmp_path) as web, browser(tmp_path) as chromium:
        for width in WIDTHS:
            chromium.set_width(width)
            chromium.open(f"{web.origin}/docs")
            wait_until(
                lambda: bool(chromium.run("return document.querySelectorAll('.opblock').length")), web.log
            )
            assert chromium.title == "Relaybatch API"
            assert "/v1/messages/batches" in chromium.text("body")
            chromium.click("[id='operations-Batches-create_batch'] .opblock-control-arrow")
            wait_until(
                lambda: bool(
                    chromium.run("return !!document.querySelector('.opblock-body .examples-select')")
                ),
                web.log,
            )
            chromium.screenshot(artefacts / f"docs-{width}.png")
            assert chromium.run(OVERFLOWING) == []
            assert chromium.console_errors() == []
