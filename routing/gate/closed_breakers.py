"""Plans without rules whose breakers are all closed: this process remembers them for half a second.

Meanwhile their calls are admitted without a round trip to Redis. Everything else is left to the scripts: a plan with
rules, an open breaker, and the probe of one that is half-open. Why: docs/adr/0011-lua-in-the-gate.md.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

from routing.gate.script_results import run_checked_script
from routing.resolution.gate_plan import takes_turns
from routing.ttl_cache import TtlCache

if TYPE_CHECKING:
    from collections.abc import Callable


class KeyTurns:
    """Which of its keys the calls of a plan take in this process. Indexes count from 1, as in the scripts."""

    def __init__(self, plan: bytes, *, keys: int, last_index: int) -> None:
        """Begin after the key that a script chose last."""
        self._keys = keys
        self._turns = itertools.count(last_index) if takes_turns(plan) else itertools.repeat(0)

    def next_index(self) -> int:
        return next(self._turns) % self._keys + 1


CLOSED_BREAKERS: TtlCache[bytes, KeyTurns | None] = TtlCache(seconds=0.5)


def remembered_turns(plan: bytes, *, keys: int, admit: Callable[[], KeyTurns | None]) -> KeyTurns | None:
    """The turns of a plan without rules whose breakers are closed; None when a script has to decide.

    When nothing is remembered, `admit` asks Redis, in one of the threads that come here at the same time. They raise
    what it raises.
    """
    return CLOSED_BREAKERS.get(plan, admit, renew=partial(_renew, plan, keys))


def clear_cache() -> None:
    """Remember nothing. Call it after a breaker may have been opened: it belongs to a key that several plans share."""
    CLOSED_BREAKERS.clear()


def _renew(plan: bytes, keys: int, turns: KeyTurns | None) -> KeyTurns | None:
    """Ask Redis again. Raises RedisUnavailable. The turns go on where they are."""
    call = {"id": "", "holder": "", "now": 0}
    _, all_closed = run_checked_script("all_closed", plan=plan, call=call, keys=keys)
    return (turns or KeyTurns(plan, keys=keys, last_index=0)) if all_closed else None
