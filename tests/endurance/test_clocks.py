"""A process whose clock is five minutes off does no harm: waiting, expiry and heartbeats use the database's clock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from batches.models import BatchItem, Worker
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_for_end, wait_until
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

SKEWED = str(Path(__file__).parents[1] / "support" / "skewed_clock")


@pytest.mark.parametrize("seconds", ["300", "-300"])
def test_a_clock_that_is_five_minutes_off_loses_expires_and_repeats_nothing(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, seconds: str
) -> None:
    """The skew exceeds RELAY_WORKER_LOST_S (3 s here), the batch's lifetime (60 s) and the backoff between attempts."""
    upstream.script(answers.status(429, headers={"Retry-After": "1"}))
    upstream.handler = lambda _: answers.after(0.05)
    worker = deployment.worker(PYTHONPATH=SKEWED, SKEW_SECONDS=seconds)
    deployment.sweeper(PYTHONPATH=SKEWED, SKEW_SECONDS=str(-float(seconds)))
    batch = submit(catalog, *[chat_body()] * 120, max_attempts=2, on_rate_limit="wait", lifetime_seconds=60)
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 120}
    assert sorted(BatchItem.objects.of(batch).values_list("attempt", flat=True))[-2:] == [1, 2]
    assert len(upstream.requests) == 121
    wait_until(lambda: Worker.objects.alive().filter(pid=worker.pid).exists(), worker.log)


def test_the_skew_is_real(deployment: Deployment) -> None:
    code = "import time, datetime; print(time.time(), datetime.datetime.now(datetime.UTC).timestamp())"
    environment = os.environ | {"PYTHONPATH": SKEWED, "SKEW_SECONDS": "100000"}
    skewed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    plain = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert all(90_000 < float(a) - float(b) < 110_000 for a, b in zip(skewed, plain, strict=True))
