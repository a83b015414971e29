"""The only way to call an upstream: every call is metered."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from routing.upstream.send import send
from usage.events import draft_event
from usage.included_usage import allowance_failure

if TYPE_CHECKING:
    from routing.calls.call import Call, Outcome
    from routing.calls.failures import Failure
    from routing.credentials.recheck import CallerSnapshot
    from usage.events import Attempt, EventDraft


@dataclass(frozen=True, slots=True)
class Metered:
    """The outcome of a call and its usage event, which the transaction that settles the call has to save."""

    outcome: Outcome
    event: EventDraft


def metered_send(*, call: Call, caller_snapshot: CallerSnapshot, attempt: Attempt, started: float) -> Metered:
    """Send a call unless the caller's allowance is used up. `caller_snapshot` is the result of a check just before.

    `started`: the beginning of the attempt on the monotonic clock. Raises what `send()` raises: a database error, and
    only before anything was sent. Saves nothing. No transaction may be open, since it waits for the network.
    """
    outcome = send(call, precheck=lambda: _precheck(call, caller_snapshot))
    target = replace(
        outcome.target,
        policy=caller_snapshot.policy,
        project=caller_snapshot.project,
        team=caller_snapshot.team,
    )
    outcome = replace(outcome, target=target)
    duration_ms = int((time.monotonic() - started) * 1000)
    event = draft_event(caller=call.caller, outcome=outcome, attempt=attempt, duration_ms=duration_ms)
    return Metered(outcome=outcome, event=event)


def _precheck(call: Call, caller_snapshot: CallerSnapshot) -> Failure | None:
    return allowance_failure(project_id=call.caller.project_id, allowance=caller_snapshot.allowance)
