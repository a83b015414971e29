"""The quota of open items: an upper bound from the batches' rows, and the items themselves where it is too high."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest
from django.db import transaction

from batches.models import Batch, BatchItem, Owner
from batches.submission.owner_quota import check_open_item_quota, get_or_create_owner, lock_quota
from relaybatch.http.errors import TooManyRequests
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.item_outcomes import discard, end
from tests.support.rows.submissions import chat_body, submit
from tests.support.run.races import run_concurrently

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries, Settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def catalog() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def test_exactly_the_limit_is_allowed_and_one_more_is_not(
    catalog: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 5
    owner_id = submit(catalog, *[chat_body()] * 3).owner_id
    check_open_item_quota(owner_id, 2)
    with pytest.raises(TooManyRequests) as error:
        check_open_item_quota(owner_id, 3)
    assert error.value.code == "too_many_open_items"
    assert "more than 5 items" in str(error.value)


def test_final_items_of_an_open_batch_do_not_count(catalog: SimpleNamespace, settings: Settings) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 3
    batch = submit(catalog, *[chat_body()] * 3)
    discard(batch, 0, error_code="timeout", error="x")
    check_open_item_quota(batch.owner_id, 1)
    with pytest.raises(TooManyRequests):
        check_open_item_quota(batch.owner_id, 2)


def test_ended_batches_and_other_owners_do_not_count(catalog: SimpleNamespace, settings: Settings) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 2
    ended = submit(catalog, *[chat_body()] * 2)
    for idx in range(2):
        discard(ended, idx, error_code="timeout", error="x")
    end(ended)
    submit(make_caller(catalog), *[chat_body()] * 2)
    check_open_item_quota(ended.owner_id, 2)


def test_below_the_limit_the_items_are_not_counted(
    catalog: SimpleNamespace, settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    owner_id = submit(catalog, *[chat_body()] * 3).owner_id
    settings.RELAY_MAX_OPEN_ITEMS = 4
    with django_assert_num_queries(1):
        check_open_item_quota(owner_id, 1)
    settings.RELAY_MAX_OPEN_ITEMS = 3
    with django_assert_num_queries(2), pytest.raises(TooManyRequests):
        check_open_item_quota(owner_id, 1)


def test_submissions_at_the_same_moment_do_not_exceed_the_limit_together(
    catalog: SimpleNamespace, settings: Settings
) -> None:
    settings.RELAY_MAX_OPEN_ITEMS = 7

    def try_to_submit() -> bool:
        try:
            submit(catalog, *[chat_body()] * 2)
        except TooManyRequests:
            return False
        return True

    assert sorted(run_concurrently([try_to_submit] * 8)) == [False] * 5 + [True] * 3
    assert (Batch.objects.count(), BatchItem.objects.count()) == (3, 6)


def test_the_quotas_lock_lets_one_transaction_pass_at_a_time() -> None:
    owner = get_or_create_owner("somebody")
    seen: list[str] = []

    def pass_through(name: str) -> None:
        with transaction.atomic():
            lock_quota(owner.id)
            seen.append(name)
            Owner.objects.filter(id=owner.id).exists()
            seen.append(name)

    run_concurrently([functools.partial(pass_through, str(number)) for number in range(4)])
    assert seen[0::2] == seen[1::2]


def test_an_owner_is_made_once_and_found_afterwards() -> None:
    ids = run_concurrently([lambda: get_or_create_owner("somebody").id] * 4)
    assert len(set(ids)) == 1
    assert Owner.objects.count() == 1
