"""The signal that a response sends to the breaker of its host key.

| response | signal | the key's breaker |
| --- | --- | --- |
| 401, also when its body was cut short | unauthorized | opens for 1, 5, 15, 60 minutes |
| 403, 5xx, the connection was lost after the request was sent | error | opens for 2, 4, ... 60 seconds |
| 429 with a Retry-After of more than 5 s | throttled | opens for that long |
| none, because of us (timeout, cancel, shutdown), or no connection could be made | none | does not change |
| every other | ok | closes, if this was its probe |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routing.transport.response_body import UpstreamResponse

SHORT_RETRY_AFTER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BreakerSignal:
    """`status`: shown in the admin for a failure. `milliseconds`: how long to open, where the response says so."""

    kind: str
    status: str = ""
    milliseconds: int = 0

    @property
    def is_failure(self) -> bool:
        return self.kind in ("unauthorized", "error", "throttled")

    @property
    def rejects_key(self) -> bool:
        """Whether the status is taken to be about the host key alone, so that another key may serve the same call."""
        return self.status in ("401", "403")

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "status": self.status, "milliseconds": self.milliseconds}


NONE = BreakerSignal("none")
OK = BreakerSignal("ok")


def breaker_signal(response: UpstreamResponse) -> BreakerSignal:
    if response.status == 401:
        return BreakerSignal("unauthorized", status="401")
    if response.status == 403 or response.status >= 500:
        return BreakerSignal("error", status=str(response.status))
    if response.connection_lost:
        return BreakerSignal("error", status="connection lost")
    if response.status == 429:
        seconds = response.retry_after_seconds or 0.0
        if seconds > SHORT_RETRY_AFTER_SECONDS:
            return BreakerSignal("throttled", status="429", milliseconds=round(seconds * 1000))
    return OK
