"""Build the usage event of one attempt; saving it is the ledger's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings

from relaybatch.ids import uuid7
from routing.calls.call import Tokens
from routing.calls.failures import FailureCode
from routing.meters import METERS
from routing.resolution.model_names import printable_name
from usage.pricing import price

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from routing.calls.call import Caller, Outcome, PriceList

# No call reads or writes a trillion tokens: an upstream that reports so many has not reported its usage.
MAX_TOKENS = 10**12
ZERO_TOKENS = Tokens(input=0, output=0)
# After these failures every request that was sent has been answered: the last one was rejected, or none followed it.
_CODES_AFTER_LAST_RESPONSE = frozenset({FailureCode.UPSTREAM_STATUS, FailureCode.UPSTREAM_UNREACHABLE})
# The limits of the columns. Clocks jump, and a worker may have been lost years ago: values are clamped, so that no
# number keeps an attempt from being settled.
SMALLINT_MAX, INTEGER_MAX = 2**15 - 1, 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The event's fields of the attempt itself. `public_batch_id`: the id that the batch's callers know."""

    source: Literal["batch", "live"]
    number: int = 1
    batch_id: uuid.UUID | None = None
    public_batch_id: str = ""
    item_idx: int | None = None
    custom_id: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """A row of `UsageEvent` without `at`, which the database sets. Fields are named as the columns are."""

    id: uuid.UUID
    source: str
    owner: str = field(repr=False)
    batch_id: uuid.UUID | None
    public_batch_id: str
    item_idx: int | None
    custom_id: str | None = field(repr=False)
    attempt: int
    late: bool
    status: int
    error_kind: str
    duration_ms: int
    upstream_ms: int
    keys_tried: int
    requested_model: str
    model: str
    provider: str
    host: str
    host_key: str
    adapter: str
    policy: str
    project: str
    project_id: uuid.UUID | None
    team: str
    principal_kind: str
    principal_id: str
    credential_kind: str
    credential_id: str
    input: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None
    cache_write_5m: int | None
    cache_write_1h: int | None
    currency: str
    cost_nanos: int | None
    upstream_cost_nanos: int | None
    cost_breakdown: Mapping[str, int]
    pricing: str

    @property
    def has_usage(self) -> bool:
        """Whether the attempt used tokens, had a cost by the upstream's report, or got a 2xx without known usage."""
        used = (self.input, self.cache_read, self.cache_write, self.output, self.upstream_cost_nanos)
        return any(used) or (self.input is None and 200 <= self.status < 300)

    def as_late(self) -> EventDraft:
        """The event of a worker that had been declared lost: its tokens and cost count, its request does not."""
        return replace(self, late=True)


def draft_event(*, caller: Caller, outcome: Outcome, attempt: Attempt, duration_ms: int) -> EventDraft:
    """Build the priced event of one counted attempt, also of one that failed before anything was sent (status 0).

    When nothing was sent, or everything that was sent was rejected without reported usage, there are no tokens and the
    cost is 0. Any other call without countable usage (2xx, lost, aborted, timed out) has unknown tokens and no price.
    """
    target, tokens = outcome.target, _counted_tokens(outcome)
    cost = price(tokens=tokens, prices=_prices_in_currency(target.prices))
    return EventDraft(
        id=uuid7(),
        source=attempt.source,
        owner=caller.owner,
        batch_id=attempt.batch_id,
        public_batch_id=attempt.public_batch_id,
        item_idx=attempt.item_idx,
        custom_id=attempt.custom_id,
        attempt=attempt.number,
        late=False,
        status=_clamp(outcome.status, SMALLINT_MAX),
        error_kind=outcome.failure.code if outcome.failure else "",
        duration_ms=_clamp(duration_ms, INTEGER_MAX),
        upstream_ms=_clamp(outcome.upstream_ms, INTEGER_MAX),
        keys_tried=_clamp(outcome.keys_tried, SMALLINT_MAX),
        project_id=caller.project_id,
        principal_kind=caller.principal_kind,
        principal_id=caller.principal_id,
        credential_kind=caller.credential_kind,
        credential_id=caller.credential_id,
        currency=settings.RELAY_CURRENCY,
        cost_nanos=cost.cost_nanos,
        upstream_cost_nanos=outcome.upstream_cost_nanos,
        cost_breakdown=cost.breakdown,
        pricing=_pricing_name(target.prices),
        # It may be any text, also one that a row cannot hold.
        requested_model=printable_name(target.requested_model),
        model=target.model,
        provider=target.provider,
        host=target.host,
        host_key=target.host_key,
        adapter=target.adapter,
        policy=target.policy,
        project=target.project,
        team=target.team,
        **_token_columns(tokens),
    )


def _clamp(value: int, maximum: int) -> int:
    return max(0, min(value, maximum))


def _counted_tokens(outcome: Outcome) -> Tokens | None:
    tokens = outcome.tokens
    if not outcome.sent or (tokens is None and not outcome.may_have_used and _was_rejected(outcome)):
        return ZERO_TOKENS
    if tokens is None or any(getattr(tokens, meter) > MAX_TOKENS for meter in METERS):
        return None
    return tokens


def _was_rejected(outcome: Outcome) -> bool:
    """Whether the last request was answered with a status other than 2xx."""
    if outcome.failure is None or outcome.failure.code not in _CODES_AFTER_LAST_RESPONSE:
        return False
    return outcome.status > 0 and not 200 <= outcome.status < 300


def _token_columns(tokens: Tokens | None) -> dict[str, Any]:
    return {meter: getattr(tokens, meter, None) for meter in METERS}


def _prices_in_currency(prices: PriceList | None) -> PriceList | None:
    """The price list, unless its currency is not the deployment's: totals add up one currency."""
    return prices if prices and prices.currency == settings.RELAY_CURRENCY else None


def _pricing_name(prices: PriceList | None) -> str:
    return f"{prices.name}@{prices.version}" if prices else ""
