"""`manage.py check_usage`: totals that are not what the events add up to are named, and set right on demand."""

from __future__ import annotations

import functools
import json
import uuid
from typing import TYPE_CHECKING

import pytest
from django.db.models import F

from tests.support.calls.shell import Shell, shell
from tests.support.rows.usage_rows import draft
from tests.support.run.races import run_concurrently
from usage.ledger import record, record_many
from usage.models import UsageEvent, UsageTotal
from usage.reconcile import compare, repair
from usage.totals import batch_totals, delete_batch_total

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["shell"]
pytestmark = pytest.mark.django_db
BATCH, PROJECT = uuid.UUID(int=0xB), uuid.UUID(int=0xC)
COST = 540_000


@pytest.fixture
def events() -> None:
    record_many([draft(batch_id=BATCH, project_id=PROJECT, item_idx=idx) for idx in range(3)])
    record(draft(batch_id=BATCH, project_id=PROJECT, item_idx=0).as_late())


def difference(shell: Shell) -> str:
    """The one line on stderr with which the command fails."""
    code, _, err = shell.run("check_usage", "--json")
    assert (code, err.count("\n")) == (1, 1)
    return err.strip()


def month() -> str:
    return f"project:{PROJECT}:{UsageEvent.objects.all()[0].at:%Y-%m}"


def test_totals_that_are_right_are_counted(shell: Shell, events: None) -> None:
    assert shell.json_result("check_usage") == {"events": 4, "totals": 2, "differing": 0, "repaired": 0}
    assert shell.run("check_usage") == (0, "2 totals are what 4 events add up to\n", "")


def test_nothing_at_all_is_right(shell: Shell) -> None:
    assert shell.json_result("check_usage") == {"events": 0, "totals": 0, "differing": 0, "repaired": 0}


def test_a_total_that_differs_is_named_with_what_differs(shell: Shell, events: None) -> None:
    UsageTotal.objects.filter(scope=f"batch:{BATCH}").update(cost_nanos=F("cost_nanos") + 1, requests=7)
    message = (
        f"batch:{BATCH}: requests is 7, its events have 3; cost_nanos is 2160001, its events have 2160000"
    )
    assert difference(shell) == f"1 total differs: {message}"
    assert shell.run("check_usage")[:2] == (1, f"{message}\n")
    assert shell.run("check_usage", "--repair") == (
        0,
        f"repaired {message}\n2 totals are what 4 events add up to\n",
        "",
    )
    assert shell.json_result("check_usage") == {"events": 4, "totals": 2, "differing": 0, "repaired": 0}
    total = batch_totals([BATCH])[BATCH]
    assert (total.requests, total.cost_nanos) == (3, 4 * COST)


def test_every_total_that_differs_is_a_line_and_stderr_names_a_few(shell: Shell) -> None:
    batches = [uuid.UUID(int=number) for number in range(1, 8)]
    record_many([draft(batch_id=batch) for batch in batches])
    UsageTotal.objects.update(output=0)
    code, out, err = shell.run("check_usage")
    assert code == 1
    assert [line.partition(": ")[0] for line in out.splitlines()] == [f"batch:{batch}" for batch in batches]
    first, *others = out.splitlines()
    assert err == f"7 totals differ: {first} | {others[0]} | {others[1]} | and 4 more\n"


def test_json_has_numbers_also_where_totals_differ(shell: Shell, events: None) -> None:
    UsageTotal.objects.update(output=0)
    code, out, err = shell.run("check_usage", "--json")
    assert (code, json.loads(out)) == (1, {"events": 4, "totals": 2, "differing": 2, "repaired": 0})
    assert (out.count("\n"), err.count("\n")) == (1, 1)
    assert shell.json_result("check_usage", "--repair") == {
        "events": 4,
        "totals": 2,
        "differing": 0,
        "repaired": 2,
    }


def test_a_months_total_that_is_gone_comes_back(shell: Shell, events: None) -> None:
    UsageTotal.objects.filter(scope__startswith="project:").delete()
    assert difference(shell).startswith(f"1 total differs: {month()}: requests is 0, its events have 3")
    shell.json_result("check_usage", "--repair")
    assert UsageTotal.objects.get(scope=month()).cost_nanos == 4 * COST


def test_a_total_without_events_becomes_zero(shell: Shell) -> None:
    UsageTotal.objects.create(scope=f"project:{PROJECT}:2020-01", shard=5, cost_nanos=9)
    assert "cost_nanos is 9, its events have 0" in difference(shell)
    shell.json_result("check_usage", "--repair")
    assert UsageTotal.objects.get().cost_nanos == 0


def test_a_batch_that_was_deleted_is_no_difference(shell: Shell, events: None) -> None:
    delete_batch_total(BATCH)
    assert shell.json_result("check_usage", "--repair") == {
        "events": 4,
        "totals": 1,
        "differing": 0,
        "repaired": 0,
    }
    assert not UsageTotal.objects.filter(scope__startswith="batch:").exists()


def test_numbers_that_no_column_of_an_event_holds_are_compared_exactly(shell: Shell) -> None:
    record(draft(batch_id=BATCH))
    UsageTotal.objects.update(cost_nanos=10**29 + 1)
    assert str(10**29 + 1) in difference(shell)
    shell.json_result("check_usage", "--repair")
    assert UsageTotal.objects.get().cost_nanos == COST


@pytest.mark.django_db(transaction=True)
def test_repairs_lose_nothing_that_workers_add_meanwhile() -> None:
    record(draft(batch_id=BATCH, project_id=PROJECT, item_idx=0))
    settling: list[Callable[[], None]] = [
        functools.partial(settle_many, first) for first in range(100, 700, 100)
    ]
    run_concurrently([*settling, repair_often])
    assert compare().differences == ()
    assert batch_totals([BATCH])[BATCH].cost_nanos == 241 * COST


@pytest.mark.django_db(transaction=True)
def test_repairs_at_the_same_moment_correct_once() -> None:
    record_many([draft(batch_id=BATCH, project_id=PROJECT, item_idx=idx) for idx in range(500)])
    for _ in range(10):
        UsageTotal.objects.update(cost_nanos=F("cost_nanos") - 7)
        run_concurrently([repair] * 4)
        assert compare().differences == ()


def settle_many(first_idx: int) -> None:
    for idx in range(first_idx, first_idx + 40):
        record(draft(batch_id=BATCH, project_id=PROJECT, item_idx=idx))


def repair_often() -> None:
    for _ in range(20):
        UsageTotal.objects.filter(scope=f"batch:{BATCH}").update(cost_nanos=F("cost_nanos") + 7)
        repair()
