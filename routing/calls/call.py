"""The values of one call: who calls, what is sent, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from routing.calls.failures import Failure
    from routing.calls.waiting_reason import WaitingReason
    from routing.transport.abort_handle import AbortHandle


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls and pays, as recorded when the call was accepted. Their rows are read again when it runs."""

    owner: str
    credential_kind: str
    credential_id: str
    principal_kind: str
    principal_id: str
    policy_id: uuid.UUID
    project_id: uuid.UUID | None
    team_id: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class Call:
    """One request as its caller wrote it.

    `timeout_seconds`: for the whole call, over all host keys, redials and responses. They begin when it is known where
    the call goes: the time that our own database takes for that is not the upstream's.
    `headers`: the caller's few that may be forwarded (`anthropic-version`, `anthropic-beta`).
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
    """Token counts by meter. The first four never overlap; the rest are parts of `output` and `cache_write`."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """The usage that a response reports. `is_reported`: it reports some, whether or not that can be read.

    `tokens`: None when unknown. `upstream_cost_nanos`: what the upstream says the call cost, in nano-dollars; None when
    it says nothing.
    """

    tokens: Tokens | None = None
    upstream_cost_nanos: int | None = None
    is_reported: bool = False


NO_REPORTED_USAGE = ReportedUsage()


@dataclass(frozen=True, slots=True)
class PriceRate:
    """A rate of a binding's price list: nano-units of the currency per million tokens of `meter`."""

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
    """Where a call went, or would have gone: names at that time, for the usage event."""

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
    """Nothing was sent; the call may be made after `seconds`.

    `reason`: `rate_limit`, `breaker_open` or `redis_away`. `must_wait`: the caller must not fail the call for it (an
    outage of ours, or a problem that passes by itself). `whole_policy`: every other call of the policy has to wait as
    long. `concurrency_limit`: as many calls of the policy as may run are running; 0: that is not the reason.
    """

    reason: WaitingReason
    seconds: float
    must_wait: bool = False
    whole_policy: bool = False
    concurrency_limit: int = 0


@dataclass(frozen=True, slots=True)
class HostKeyRejection:
    """The upstream rejected our host key (401, 403). That is not the call's fault: it may be made again.

    `seconds`: until a host key may be usable. `has_other_keys`: there is a host key that rejected neither this call
    nor, with 401, another one.
    """

    seconds: float
    has_other_keys: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call. `failure` is None exactly when `body` is a usable response.

    With a `postponement`, the failure is the one for a caller that does not wait. With `host_key_rejected`, the failure
    is the upstream's 401 or 403.
    `sent`: at least one request may have reached an upstream. `status`: the upstream's, 0 when none responded.
    `request_id`: the last answer's, by which its upstream knows the call; visible ASCII, at most 200 characters.
    `tokens`, `upstream_cost_nanos`: what its response reports, see `ReportedUsage`. `may_have_used`: the response
    reports usage, or an earlier request of the call was lost or reported some. A denial without it used nothing.
    """

    target: Target
    failure: Failure | None = None
    body: bytes = field(default=b"", repr=False)
    status: int = 0
    request_id: str = ""
    sent: bool = False
    keys_tried: int = 0
    upstream_ms: int = 0
    tokens: Tokens | None = None
    upstream_cost_nanos: int | None = None
    may_have_used: bool = False
    postponement: Postponement | None = None
    host_key_rejected: HostKeyRejection | None = None
