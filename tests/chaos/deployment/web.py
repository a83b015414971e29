"""HTTP client for the web processes. It counts every status, and reports a 5xx other than 503 as a violation."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import ChaosDeployment

CALL_SECONDS = 5.0
NO_5XX = "web answers no 5xx but 503"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes = field(repr=False)


class WebClient:
    """Each call goes to one of the web processes, chosen at random."""

    def __init__(self, deployment: ChaosDeployment, findings: Findings) -> None:
        self.statuses: Counter[str] = Counter()
        self._deployment = deployment
        self._findings = findings
        self._lock = threading.Lock()

    def call(
        self,
        rng: random.Random,
        method: str,
        path: str,
        *,
        owner: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply | None:
        """Send a request. None if no complete response came; it is unknown then whether it had an effect."""
        port = rng.choice(self._deployment.web_ports)
        sent = {**self._deployment.credentials[owner].headers, **(headers or {})}
        began = time.monotonic()
        reply = _send(port, method, path, headers=sent, body=body)
        with self._lock:
            self.statuses[str(reply.status) if reply else "no answer"] += 1
        wrong = reply is not None and reply.status >= 500 and reply.status != 503
        message = f"{method} {path}: {reply.status} {reply.body[:120]!r}" if wrong and reply else ""
        self._findings.record(
            NO_5XX,
            *([f"{message} (after {time.monotonic() - began:.1f} s)"] if message else []),
            times=bool(reply),
        )
        return reply


def _send(
    port: int, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None
) -> Reply | None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=CALL_SECONDS)) as client:
        try:
            client.request(method, path, body=body, headers=dict(headers))
            response = client.getresponse()
            return Reply(response.status, response.read())
        except (OSError, http.client.HTTPException):
            return None
