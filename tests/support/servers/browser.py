"""A real Chromium, driven by chromedriver with the WebDriver protocol (https://www.w3.org/TR/webdriver2/)."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import requests

from relaybatch.quickstart.servers.watchdog_process import WatchdogProcess
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
INSTALLED = bool(CHROMIUM and CHROMEDRIVER)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_STARTED = re.compile(r"started successfully on port (\d+)")
_FLAGS = (
    *(
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
    ),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    "--window-size=1440,1000",
)


class Browser:
    def __init__(self, session_url: str) -> None:
        self._url = session_url

    def open(self, url: str) -> None:
        """Open a page and wait until it and its resources are loaded."""
        self._post("url", {"url": url})

    def click(self, css: str) -> None:
        self._post(f"element/{self._find(css)}/click", {})

    def type(self, css: str, text: str) -> None:
        self._post(f"element/{self._find(css)}/value", {"text": text})

    def text(self, css: str) -> str:
        return str(self._get(f"element/{self._find(css)}/text"))

    @property
    def title(self) -> str:
        return str(self._get("title"))

    def is_filled(self) -> bool:
        """Whether everything that the page fetches later has arrived."""
        return bool(self.run("return !document.querySelector('[data-fill]:not([data-filled])')"))

    def run(self, script: str) -> Any:
        """What the script returns."""
        return self._post("execute/sync", {"script": script, "args": []})

    def set_width(self, pixels: int) -> None:
        """Of the page itself, also below the least width of a window."""
        metrics = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        command = {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}
        self._post("goog/cdp/execute", command)

    def console_errors(self) -> list[str]:
        """Messages of level SEVERE in the console since the last call."""
        entries = self._post("se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._get("screenshot")))

    def _find(self, css: str) -> str:
        return str(self._post("element", {"using": "css selector", "value": css})[_ELEMENT])

    def _get(self, path: str) -> Any:
        return _value(requests.get(f"{self._url}/{path}", timeout=60))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return _value(requests.post(f"{self._url}/{path}", json=body, timeout=60))


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own in `folder`; it ends with the block."""
    driver = WatchdogProcess(
        [str(CHROMEDRIVER), "--port=0"],
        log=folder / "chromedriver.log",
        stop_steps="TERM:5",
        environment=dict(os.environ)
        | {"HOME": str(folder), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
        directory=folder,
    )
    try:
        wait_until(lambda: bool(_STARTED.search(driver.log.read_text())), lambda: driver.log.read_text())
        port = _STARTED.findall(driver.log.read_text())[-1]
        with _session(f"http://127.0.0.1:{port}", folder) as session_url:
            yield Browser(session_url)
    finally:
        driver.stop()


@contextlib.contextmanager
def _session(driver_url: str, folder: Path) -> Iterator[str]:
    options = {"binary": CHROMIUM, "args": [*_FLAGS, f"--user-data-dir={folder / 'profile'}"]}
    capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
    body = {"capabilities": {"alwaysMatch": capabilities}}
    session = _value(requests.post(f"{driver_url}/session", json=body, timeout=60))
    url = f"{driver_url}/session/{session['sessionId']}"
    try:
        yield url
    finally:
        requests.delete(url, timeout=60)


def _value(response: requests.Response) -> Any:
    value = response.json()["value"]
    assert response.ok, value
    return value
