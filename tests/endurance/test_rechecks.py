"""Another process revokes a credential while its batch runs at full speed."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from batches.models import BatchItem
from routing.models import InferenceToken, RelayKey
from tests.support.rows.submissions import chat_body, submit
from tests.support.rows.tokens import make_token_caller
from tests.support.servers.deployment import ROOT, deployment_environment, wait_for_end, wait_until
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from datetime import datetime
    from types import SimpleNamespace

    from batches.models import Batch
    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = 1_500


def test_a_key_revoked_in_the_middle_stops_every_item_that_starts_a_second_later(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    batch = run_and_revoke(deployment, catalog, upstream, "revoke_key", str(catalog.relay_key.id))
    revoked_at = RelayKey.objects.get(id=catalog.relay_key.id).revoked_at
    assert revoked_at
    assert_stopped(batch, upstream, revoked_at=revoked_at)


def test_tokens_revoked_in_the_middle_stop_every_item_that_starts_a_second_later(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> None:
    caller = make_token_caller(catalog)
    batch = run_and_revoke(deployment, caller, upstream, "revoke_tokens", "--user", caller.user.username)
    revoked_at = InferenceToken.objects.get(jti=caller.minted.jti).revoked_at
    assert revoked_at
    assert_stopped(batch, upstream, revoked_at=revoked_at)


def run_and_revoke(
    deployment: Deployment, caller: SimpleNamespace, upstream: Upstream, *command: str
) -> Batch:
    upstream.handler = lambda _: answers.after(0.05)
    deployment.worker()
    batch = submit(caller, *[chat_body()] * ITEMS)
    done = BatchItem.objects.filter(batch_id=batch.id, state="completed")
    wait_until(lambda: done.count() >= 20, lambda: f"{done.count()} done")
    subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=deployment_environment(), check=True
    )
    wait_for_end(batch, seconds=90)
    return batch


def assert_stopped(batch: Batch, upstream: Upstream, *, revoked_at: datetime) -> None:
    items = BatchItem.objects.filter(batch_id=batch.id)
    late = items.filter(started_at__gt=revoked_at + timedelta(seconds=1))
    assert late.count() > 100
    assert set(late.values_list("state", "error_code")) == {("discarded", "credential_revoked")}
    sent = {request.headers["idempotency-key"] for request in upstream.requests}
    assert not sent & {str(item_id) for item_id in late.values_list("id", flat=True)}
    assert not items.filter(finished_at__lt=revoked_at).exclude(state="completed").exists()
