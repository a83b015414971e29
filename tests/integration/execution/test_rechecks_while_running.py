"""What is removed while a batch runs stops every item that starts a second later; none of those is sent."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from relaybatch.ids import uuid7
from routing.credentials.relay_keys import disable_key, revoke_key, rotate_key
from routing.credentials.tokens import revoke_all_tokens, revoke_token
from routing.models import InferenceToken, Policy, Project, RelayKey, ServiceAccount, Team, User
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, publish_all, submit
from tests.support.rows.tokens import make_token_caller
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from batches.models import Batch
    from tests.support.upstream.upstream import Upstream

    Change = Callable[[SimpleNamespace], Any]

pytestmark = pytest.mark.django_db(transaction=True)
ENOUGH_ITEMS = 400


def only(model: Any, row: Any) -> Any:
    return model.objects.filter(pk=row.pk)


OF_KEYS: list[tuple[str, Change]] = [
    ("credential_disabled", lambda rows: disable_key(key_id=rows.relay_key.id)),
    ("credential_revoked", lambda rows: revoke_key(key_id=rows.relay_key.id, now=timezone.now())),
    ("credential_expired", lambda rows: only(RelayKey, rows.relay_key).update(expires_at=timezone.now())),
    ("credential_rotated", lambda rows: rotate_key(key_id=rows.relay_key.id, now=timezone.now())),
    ("credential_deleted", lambda rows: only(RelayKey, rows.relay_key).delete()),
    ("credential_deleted", lambda rows: only(ServiceAccount, rows.service_account).delete()),
    ("principal_disabled", lambda rows: only(ServiceAccount, rows.service_account).update(enabled=False)),
    ("project_disabled", lambda rows: only(Project, rows.project).update(enabled=False)),
    ("project_disabled", lambda rows: only(Team, rows.team).update(enabled=False)),
    ("policy_disabled", lambda rows: only(Policy, rows.policy).update(enabled=False)),
    ("policy_deleted", lambda rows: only(Policy, rows.policy).delete()),
]
OF_TOKENS: list[tuple[str, Change]] = [
    ("credential_revoked", lambda rows: revoke_token(jti=rows.minted.jti, now=timezone.now())),
    ("credential_revoked", lambda rows: revoke_all_tokens(rows.user, now=timezone.now())),
    ("credential_revoked", lambda rows: only(User, rows.user).update(token_version=7)),
    ("credential_expired", lambda _: InferenceToken.objects.update(expires_at=timezone.now())),
    ("credential_expired", lambda _: InferenceToken.objects.all().delete()),
    ("credential_deleted", lambda rows: only(User, rows.user).delete()),
    ("principal_disabled", lambda rows: only(User, rows.user).update(is_active=False)),
    ("project_disabled", lambda rows: only(Project, rows.project).update(enabled=False)),
    ("policy_disabled", lambda rows: only(Policy, rows.policy).update(enabled=False)),
    ("policy_deleted", lambda rows: only(Policy, rows.policy).delete()),
]


@pytest.fixture
def rows(upstream: Upstream) -> SimpleNamespace:
    upstream.handler = lambda _: answers.after(0.02)
    return make_catalog(upstream.url)


class Running:
    """A batch whose items this process runs one after the other, as one slot of a worker does."""

    def __init__(self, batch: Batch, upstream: Upstream) -> None:
        self._items = iter(list(BatchItem.objects.filter(batch_id=batch.id).order_by("idx")))
        self._running = InFlightItems(uuid7(), slots=8)
        self._upstream = upstream

    def run_one(self) -> BatchItem:
        item = next(self._items)
        execute_item(item.id, in_flight=self._running)
        item.refresh_from_db()
        return item

    def run_until_refused(self) -> tuple[BatchItem, float]:
        """The first item that did not complete, and when (monotonic) the last one that did was begun."""
        begun = time.monotonic()
        while (item := self.run_one()).state == "completed":
            begun = time.monotonic()
        sent = {request.headers["idempotency-key"] for request in self._upstream.requests}
        assert str(item.id) not in sent
        return item, begun


@pytest.mark.parametrize(("code", "change"), OF_KEYS)
def test_a_change_of_a_keys_standing_is_seen_within_a_second(
    rows: SimpleNamespace, upstream: Upstream, code: str, change: Change
) -> None:
    assert_seen_within_a_second(rows, upstream, code=code, change=change)


@pytest.mark.parametrize(("code", "change"), OF_TOKENS)
def test_a_change_of_a_tokens_standing_is_seen_within_a_second(
    rows: SimpleNamespace, upstream: Upstream, code: str, change: Change
) -> None:
    assert_seen_within_a_second(make_token_caller(rows), upstream, code=code, change=change)


def test_a_rotated_value_goes_on_until_its_grace_is_over(rows: SimpleNamespace, upstream: Upstream) -> None:
    running = start(rows, upstream)
    rotate_key(key_id=rows.relay_key.id, grace_seconds=1, now=timezone.now())
    rotated = time.monotonic()
    item, last = running.run_until_refused()
    assert item.error_code == "credential_rotated"
    assert 0.5 < last - rotated < 1.5


def test_a_token_stops_at_the_second_of_its_expiry(rows: SimpleNamespace, upstream: Upstream) -> None:
    running = start(make_token_caller(rows, ttl_seconds=2), upstream)
    item, _ = running.run_until_refused()
    expires_at = InferenceToken.objects.get().expires_at
    assert item.error_code == "credential_expired"
    assert item.started_at
    assert timedelta(seconds=-0.1) < item.started_at - expires_at < timedelta(seconds=1)


def start(rows: SimpleNamespace, upstream: Upstream) -> Running:
    batch = submit(rows, *[chat_body()] * ENOUGH_ITEMS)
    publish_all(batch)
    running = Running(batch, upstream)
    assert running.run_one().state == "completed"
    return running


def assert_seen_within_a_second(
    rows: SimpleNamespace, upstream: Upstream, *, code: str, change: Change
) -> None:
    running = start(rows, upstream)
    change(rows)
    changed = time.monotonic()
    item, last = running.run_until_refused()
    assert (item.state, item.error_code) == ("discarded", code)
    assert code.partition("_")[0] in item.error
    assert last - changed < 1
