"""HTTP client of the demo for its own web server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests

from relaybatch.quickstart.errors import QuickstartError

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_SECONDS = 30
CLIENT_ERROR = 400
SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class DemoResponse:
    status: int
    text: str

    def json(self) -> dict[str, Any]:
        """Return the JSON object. Raises QuickstartError with the response's text for a status of 400 or more."""
        if self.status >= CLIENT_ERROR:
            raise QuickstartError(f"the demo's own request was refused with {self.status}: {self.text[:300]}")
        content: dict[str, Any] = json.loads(self.text)
        return content


class DemoClient:
    def __init__(self, base_url: str, *, relay_key: str) -> None:
        self._base_url = base_url
        self._session = requests.Session()
        # Requests to our own port must not go through a proxy of the environment.
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {relay_key}"

    def close(self) -> None:
        self._session.close()

    def is_ready(self) -> bool:
        try:
            return self._request("GET", "/readyz").status < SERVER_ERROR
        except requests.RequestException:
            return False

    def submit(self, body: Path) -> str:
        """Submit a batch and return its id."""
        return str(self._request("POST", "/v1/batches", data=body.read_bytes()).json()["id"])

    def status(self, batch_id: str) -> dict[str, Any]:
        return self._request("GET", f"/v1/batches/{batch_id}?items=false").json()

    def results(self, batch_id: str) -> list[dict[str, Any]]:
        path = f"/v1/batches/{batch_id}/results?include=usage"
        results: list[dict[str, Any]] = self._request("GET", path).json()["results"]
        return results

    def _request(self, method: str, path: str, *, data: bytes | None = None) -> DemoResponse:
        response = self._session.request(method, self._base_url + path, data=data, timeout=TIMEOUT_SECONDS)
        return DemoResponse(status=response.status_code, text=response.text)
