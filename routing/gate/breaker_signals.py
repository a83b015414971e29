"""What a reply says of the host key that it came for.

| reply | verdict | the key's breaker |
| --- | --- | --- |
| 401, also when its body was cut | refused | opens for 1, 5, 15, 60 minutes |
| 403, 5xx, the connection broke after the request was sent | trouble | opens for 2, 4, ... 60 seconds |
| 429 with a Retry-After of more than 5 s | busy | opens for so long |
| none, because of us: time-out, cancel, shutdown; or no connection could be made | none | stays as it is |
| every other | good | closes, if this was its probe |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routing.transport.http_request import UpstreamResponse

SHORT_RETRY_AFTER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BreakerSignal:
    """`status`: what the admin shows of a failure. `milliseconds`: how long to keep away, where the reply says it."""

    kind: str
    status: str = ""
    milliseconds: int = 0

    @property
    def is_failure(self) -> bool:
        return self.kind in ("refused", "trouble", "busy")

    @property
    def rejects_key(self) -> bool:
        """Taken to be about the host key alone: another one may do for the same call."""
        return self.status in ("401", "403")

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "status": self.status, "milliseconds": self.milliseconds}


NONE = BreakerSignal("none")
OK = BreakerSignal("good")


def breaker_signal(reply: UpstreamResponse) -> BreakerSignal:
    if reply.status == 401:
        return BreakerSignal("refused", status="401")
    if reply.status == 403 or reply.status >= 500:
        return BreakerSignal("trouble", status=str(reply.status))
    if reply.connection_lost:
        return BreakerSignal("trouble", status="connection lost")
    if reply.status == 429:
        seconds = reply.retry_after_seconds or 0.0
        if seconds > SHORT_RETRY_AFTER_SECONDS:
            return BreakerSignal("busy", status="429", milliseconds=round(seconds * 1000))
    return OK
