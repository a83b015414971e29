"""Every state, failure code and waiting reason fits its column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db.models import CharField

from batches.models import BatchItem, PolicyPause
from batches.states import ItemState
from routing.calls.failures import FailureCode
from routing.calls.waiting_reason import WaitingReason
from usage.models import UsageEvent

if TYPE_CHECKING:
    from enum import StrEnum

    from django.db.models import Model


@pytest.mark.parametrize(
    ("names", "model", "column"),
    [
        (ItemState, BatchItem, "state"),
        (FailureCode, BatchItem, "error_code"),
        (FailureCode, UsageEvent, "error_kind"),
        (WaitingReason, BatchItem, "waiting_reason"),
        (WaitingReason, PolicyPause, "reason"),
    ],
)
def test_the_longest_name_fits(names: type[StrEnum], model: type[Model], column: str) -> None:
    field = model._meta.get_field(column)
    assert isinstance(field, CharField)
    assert max(map(len, names)) <= (field.max_length or 0)


def test_states_differ_by_their_second_letter() -> None:
    """`state_letters` needs it."""
    assert len({state[1] for state in ItemState}) == len(ItemState)
