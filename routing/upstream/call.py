"""The words of one call: who calls, what is sent, the line it is sent on, and what came of it."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from routing.upstream.failures import Failure
    from routing.upstream.waiting_reason import WaitingReason


@dataclass(frozen=True, slots=True)
class Caller:
    """Who pays for a call, as recorded when it was asked for. Everything about them is read again when it runs."""

    owner: str
    credential_kind: str
    credential_id: str
    principal_kind: str
    principal_id: str
    policy_id: uuid.UUID
    project_id: uuid.UUID | None
    team_id: uuid.UUID | None


class AbortHandle:
    """What another thread may cut: the sockets of one running call.

    `cut(reason)` shuts them down, and every socket attached later as well, so that a cut is never missed
    between two requests. The first reason stays. `deadline` (monotonic) is set by `send()`, for it and for whoever
    watches over the line: None until it is known where the call goes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = threading.Event()
        self.abort_reason: str | None = None
        self.deadline: float | None = None

    def attach(self, sock: socket.socket) -> None:
        with self._lock:
            self._socket = sock
            if self.abort_reason is not None:
                _shut_down(sock)

    def detach(self, sock: socket.socket | None = None) -> None:
        """Forgets the socket that is attached; when `sock` is given, only if it is that one."""
        with self._lock:
            if sock is None or sock is self._socket:
                self._socket = None

    def abort(self, reason: str) -> None:
        with self._lock:
            self.abort_reason = self.abort_reason or reason
            self._aborted.set()
            if self._socket is not None:
                _shut_down(self._socket)

    def wait(self, seconds: float) -> None:
        """Waits, but not beyond a cut."""
        self._aborted.wait(seconds)


def _shut_down(sock: socket.socket) -> None:
    # A socket that the other thread has closed meanwhile is as good as shut.
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Call:
    """One request as its caller wrote it. `timeout_seconds` are in total: over keys, re-dials and answers.

    They begin when it is known where the call goes: what our own database takes to say so is no upstream's delay.
    `headers` are the few that may travel on (`anthropic-version`, `anthropic-beta`).
    """

    caller: Caller
    adapter: str
    body: bytes = field(repr=False)
    idempotency_key: str
    timeout_seconds: float
    abort_handle: AbortHandle
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Counts by meter; the first four never overlap, the rest are parts of `output` and `cache_write`."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """What an answer says of its own use. `is_told`: something, and be it nothing that can be counted.

    `tokens` None: they cannot be told. `upstream_cost_nanos`: in nano-dollars, what the upstream says that the call
    cost, None where it says nothing.
    """

    tokens: Tokens | None = None
    upstream_cost_nanos: int | None = None
    is_reported: bool = False


NO_REPORTED_USAGE = ReportedUsage()


@dataclass(frozen=True, slots=True)
class PriceRate:
    """A rate of a binding's pricing: nano-units of the currency per million tokens of `meter`."""

    meter: str
    rate_nanos: int
    above_tokens: int


@dataclass(frozen=True, slots=True)
class PriceList:
    name: str
    version: int
    currency: str
    rates: tuple[PriceRate, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Names of where a call went, or would have gone: snapshots for the usage event."""

    requested_model: str = ""
    model: str = ""
    provider: str = ""
    host: str = ""
    host_key: str = ""
    adapter: str = ""
    policy: str = ""
    project: str = ""
    team: str = ""
    prices: PriceList | None = None


@dataclass(frozen=True, slots=True)
class Postponement:
    """Nothing was sent, and the call may be made after `seconds`.

    `reason`: `rate_limit`, `breaker_open` or `redis_away`. `must_wait`: the caller may not fail the call for this
    (it is our own outage, or trouble that passes by itself). `whole_policy`: every other call of the policy has to
    wait as long. `at_once`: so many calls of the policy run already, and no more may.
    """

    reason: WaitingReason
    seconds: float
    must_wait: bool = False
    whole_policy: bool = False
    concurrency_limit: int = 0


@dataclass(frozen=True, slots=True)
class HostKeyRejection:
    """The upstream refused our host key (401, 403), which says nothing of the call: it may be made again.

    `seconds`: until a host key may be usable. `others`: one of them refused neither this call nor, with 401, another.
    """

    seconds: float
    has_other_keys: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call. `failure` is None exactly when `body` is a usable answer.

    With a `postponement`, the failure is what it would be for a caller who doesn't wait. `key_refused`: the failure
    is the upstream's 401 or 403.
    `sent`: at least one request may have reached an upstream. `status`: the upstream's, 0 when none answered.
    `tokens`, `upstream_cost_nanos`: what its answer says, see `Used`. `may_have_used`: so it says, or an earlier
    request of the call was lost, or said so. A refusal without it used nothing.
    """

    target: Target
    failure: Failure | None = None
    body: bytes = field(default=b"", repr=False)
    status: int = 0
    sent: bool = False
    keys_tried: int = 0
    upstream_ms: int = 0
    tokens: Tokens | None = None
    upstream_cost_nanos: int | None = None
    may_have_used: bool = False
    postponement: Postponement | None = None
    host_key_rejected: HostKeyRejection | None = None
