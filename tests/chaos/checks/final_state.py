"""The state at the end of a run: rows of the database and requests of the upstream, grouped by item."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from psycopg.rows import class_row

from tests.chaos.deployment.upstream_responses import FIRST_INPUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import psycopg

    from tests.chaos.checks.live_checks import FinalItem
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.deployment.upstream import Served
    from tests.chaos.submitted import Submission

_BATCHES = """
SELECT id, dialect, total_items, max_attempts, ended_at IS NOT NULL AS ended, deleted_at IS NOT NULL AS deleted,
    final_counts, metadata
FROM batches_batch
"""
_EVENTS = """
SELECT batch_id, item_idx AS idx, attempt, late, status, error_kind, keys_tried, input, output, cost_nanos
FROM usage_usageevent
"""
_RESPONSES = "SELECT item_id, body FROM batches_itemresponse"


@dataclass(frozen=True, slots=True)
class BatchRow:
    id: uuid.UUID
    dialect: str
    total_items: int
    max_attempts: int
    ended: bool
    deleted: bool
    final_counts: dict[str, int] | None
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class Event:
    batch_id: uuid.UUID
    idx: int
    attempt: int
    late: bool
    status: int
    error_kind: str
    keys_tried: int
    input: int | None
    output: int | None
    cost_nanos: int | None

    @property
    def answer_number(self) -> int | None:
        """Number of the upstream's response that its tokens identify; None if it has no tokens."""
        return self.input - FIRST_INPUT if self.input else None

    @property
    def is_refusal(self) -> bool:
        """Whether the upstream rejected our host key."""
        return self.error_kind == "upstream_status" and self.status in (401, 403)


@dataclass(frozen=True, slots=True)
class FinalState:
    """`items`: also of deleted batches. `events`, `served`: by item. `answers`: the upstream's responses by number."""

    batches: Mapping[uuid.UUID, BatchRow]
    items: Sequence[FinalItem]
    events: Mapping[tuple[uuid.UUID, int], list[Event]]
    served: Mapping[uuid.UUID, list[Served]]
    answers: Sequence[Served] = field(repr=False)
    submissions: Sequence[Submission] = field(repr=False)
    responses: Mapping[uuid.UUID, bytes] = field(repr=False)
    """Those in the database, by item."""
    unknown_items: int = 0
    """How many items the upstream got requests for that are not in the database."""

    def events_of(self, item: FinalItem) -> list[Event]:
        return self.events.get((item.batch_id, item.idx), [])

    def served_to(self, item: FinalItem) -> list[Served]:
        return self.served.get(item.id, [])


def collect_final_state(
    deployment: ChaosDeployment,
    database: psycopg.Connection[Any],
    *,
    finals: Mapping[uuid.UUID, FinalItem],
    submissions: Sequence[Submission],
) -> FinalState:
    with database.cursor(row_factory=class_row(BatchRow)) as cursor:
        batches = {batch.id: batch for batch in cursor.execute(_BATCHES).fetchall()}
    events: dict[tuple[uuid.UUID, int], list[Event]] = defaultdict(list)
    with database.cursor(row_factory=class_row(Event)) as event_cursor:
        for event in event_cursor.execute(_EVENTS).fetchall():
            events[event.batch_id, event.idx].append(event)
    answers = list(deployment.upstream.served)
    served: dict[uuid.UUID, list[Served]] = defaultdict(list)
    for one in answers:
        served[uuid.UUID(one.item)].append(one)
    return FinalState(
        batches=batches,
        items=list(finals.values()),
        events=events,
        served=served,
        answers=answers,
        submissions=submissions,
        responses={item_id: bytes(body) for item_id, body in database.execute(_RESPONSES).fetchall()},
        unknown_items=len(served.keys() - finals.keys()),
    )
