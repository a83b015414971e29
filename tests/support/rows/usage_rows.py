"""Usage events for tests, by way of the code that makes them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from routing.calls.call import Caller, Outcome, PriceList, PriceRate, Target, Tokens
from routing.calls.failures import Failure, FailureCode
from usage.events import Attempt, EventDraft, draft_event

USD_LIST = PriceList(
    name="plain",
    version=3,
    currency="USD",
    rates=(
        PriceRate(meter="input", rate_nanos=2_000_000_000, above_tokens=0),
        PriceRate(meter="cache_read", rate_nanos=500_000_000, above_tokens=0),
        PriceRate(meter="output", rate_nanos=8_000_000_000, above_tokens=0),
    ),
)
TARGET = Target(
    requested_model="gpt",
    model="gpt-4o",
    provider="openai",
    host="openai-eu",
    host_key="openai-main",
    adapter="openai",
    policy="default",
    project="search",
    team="core",
    prices=USD_LIST,
)
ANSWERED = Outcome(
    target=TARGET,
    body=b"{}",
    status=200,
    sent=True,
    keys_tried=1,
    upstream_ms=40,
    tokens=Tokens(input=60, cache_read=40, output=50),
)


def refused(*, status: int = 429, code: str = "upstream_status") -> Outcome:
    return replace(
        ANSWERED, failure=Failure(code=FailureCode(code), message=code), status=status, body=b"", tokens=None
    )


def unreadable() -> Outcome:
    """An answer without usage: what it cost is not known, while one that refused cost nothing."""
    return refused(status=200, code="upstream_unreadable")


def caller(*, owner: str = "owner-a", project_id: uuid.UUID | None = None) -> Caller:
    return Caller(
        owner=owner,
        credential_kind="key",
        credential_id=f"key-of-{owner[:8]}",
        principal_kind="serviceaccount",
        principal_id=f"account-of-{owner[:8]}",
        policy_id=uuid.UUID(int=1),
        project_id=project_id,
        team_id=None,
    )


def draft(
    *,
    owner: str = "owner-a",
    project_id: uuid.UUID | None = None,
    outcome: Outcome = ANSWERED,
    duration_ms: int = 50,
    **attempt: Any,
) -> EventDraft:
    """An event of item 0 of a batch of its own, unless `attempt` says otherwise (fields of `Attempt`)."""
    batch_id = attempt.pop("batch_id", uuid.uuid4())
    facts: dict[str, Any] = {
        "source": "batch",
        "batch_id": batch_id,
        "public_batch_id": str(batch_id or ""),
        "item_idx": 0,
    }
    return draft_event(
        caller=caller(owner=owner, project_id=project_id),
        outcome=outcome,
        attempt=Attempt(**(facts | attempt)),
        duration_ms=duration_ms,
    )
