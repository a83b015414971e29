"""A sweeper that is killed or stopped while it validates or finalizes a batch of a file."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from batches.models import Batch, BatchItem, File
from routing.failpoints import FILE_POINTS
from tests.support.calls.file_batch_caller import (
    ITEMS,
    FileBatchCaller,
    content,
    file_caller,
    number_of,
    sends_per_item,
)
from tests.support.servers.deployment import wait_until
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Answer, Request, Upstream

__all__ = ["file_caller"]
pytestmark = pytest.mark.django_db(transaction=True)


def half_fail(request: Request) -> Answer:
    number = number_of(request)
    return answers.usable() if number % 2 else answers.status(400)


@pytest.mark.parametrize("point", FILE_POINTS)
def test_a_sweeper_killed_at_any_point_of_a_batch_of_files_changes_nothing_in_its_end(
    file_caller: FileBatchCaller, deployment: Deployment, upstream: Upstream, point: str
) -> None:
    upstream.handler = half_fail
    deployment.worker()
    victim = deployment.sweeper(RELAY_FAULT=f"{point}:kill")
    batch_id = file_caller.create(content())
    wait_until(lambda: not victim.is_alive, victim.log)
    deployment.sweeper()
    found = file_caller.wait(batch_id)
    assert (found["status"], found["errors"]) == ("completed", None)
    assert found["request_counts"] == {"total": ITEMS, "completed": ITEMS // 2, "failed": ITEMS // 2}
    assert found["usage"]["total_tokens"] > 0
    output, errors = file_caller.lines(found["output_file_id"]), file_caller.lines(found["error_file_id"])
    assert [one["custom_id"] for one in output] == [f"item-{number}" for number in range(1, ITEMS, 2)]
    assert [one["custom_id"] for one in errors] == [f"item-{number}" for number in range(0, ITEMS, 2)]
    assert set(sends_per_item(upstream).values()) == {1}
    assert File.objects.filter(purpose="batch_output").count() == 2
    assert BatchItem.objects.count() == ITEMS


def test_two_sweepers_that_both_believe_to_be_the_one_make_one_batch(
    file_caller: FileBatchCaller, deployment: Deployment, upstream: Upstream
) -> None:
    """The first is stopped while it packs, loses its lock, and wakes up when the second has done its work."""
    deployment.worker()
    first = deployment.sweeper(RELAY_FAULT="after_packing:stop,after_output_files:stop")
    batch_id = file_caller.create(content())
    wait_until(lambda: _is_stopped(first.pid), first.log)
    deployment.sweeper()
    found = file_caller.wait(batch_id)
    first.signal(signal.SIGCONT)
    assert (found["status"], found["request_counts"]["completed"]) == ("completed", ITEMS)
    assert set(sends_per_item(upstream).values()) == {1}
    assert first.stop() == 0
    assert BatchItem.objects.count() == ITEMS
    assert Batch.objects.get().total_items == ITEMS
    assert file_caller.status(batch_id) == found


def _is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"
