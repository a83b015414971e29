"""Items run on real Celery workers, and survive what happens to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from batches.models import BatchItem
from batches.payloads import open_store
from tests.deployment import wait_for_end
from tests.submissions import chat_body, submit
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.deployment import Deployment
    from tests.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)


def sends_per_item(upstream: Upstream) -> Counter[str]:
    return Counter(request.headers["idempotency-key"] for request in upstream.requests)


def test_a_batch_goes_through_a_worker_to_results_and_cost(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    deployment.worker()
    batch = submit(catalog, *[chat_body(f"item {number}") for number in range(20)])
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 20}
    refs = BatchItem.objects.of(batch).values_list("idx", "claim_no")
    assert all(open_store().responses(batch.id, refs))
    assert max(sends_per_item(upstream).values()) == 1
    assert UsageEvent.objects.filter(cost_nanos__gt=0).count() == 20
