from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from relaybatch.http.errors import Unauthenticated
from routing.calls.failures import CallFailed, Failure
from routing.credentials.credential import authenticate
from routing.credentials.recheck import CallerSnapshot, caller_snapshot, clear_cache, recheck
from routing.credentials.relay_keys import disable_key, revoke_key, rotate_key
from routing.models import Policy, Project, RelayKey, ServiceAccount, Team
from tests.support.calls.upstream_calls import caller_of
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries

    from routing.calls.call import Caller

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 3, 12, tzinfo=UTC)


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def failure_of(caller: Caller, *, now: datetime = NOW) -> Failure:
    with pytest.raises(CallFailed) as failed:
        recheck(caller, now=now)
    assert not failed.value.failure.retryable
    return failed.value.failure


@pytest.mark.parametrize("minutes_ahead", [5, -5])
def test_a_machine_whose_clock_is_wrong_decides_by_the_databases(
    rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, minutes_ahead: int
) -> None:
    caller, right = caller_of(rows), timezone.now()
    wrong = right + timedelta(minutes=minutes_ahead)
    monkeypatch.setattr("django.utils.timezone.now", lambda: wrong)
    RelayKey.objects.update(expires_at=right + timedelta(minutes=1))
    assert recheck(caller).policy == rows.policy.name
    assert authenticate(rows.relay_key_value).id == str(rows.relay_key.id)
    clear_cache()
    RelayKey.objects.update(expires_at=right - timedelta(minutes=1))
    with pytest.raises(CallFailed, match="credential_expired"):
        recheck(caller)
    with pytest.raises(Unauthenticated, match="is expired"):
        authenticate(rows.relay_key_value)


def test_a_caller_in_good_standing_is_named_in_one_query(
    rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    caller = caller_of(rows)
    with django_assert_num_queries(1):
        standing = recheck(caller, now=NOW)
        assert recheck(caller, now=NOW) == standing
    assert standing == CallerSnapshot(policy=rows.policy.name, project=rows.project.name, team=rows.team.name)


def test_each_way_out_of_use_fails_the_call(rows: SimpleNamespace) -> None:
    key, account = rows.relay_key.id, ServiceAccount.objects.filter(id=rows.service_account.id)
    changes: dict[str, Callable[[], object]] = {
        "policy_disabled": lambda: Policy.objects.filter(id=rows.policy.id).update(enabled=False),
        "policy_deleted": lambda: Policy.objects.filter(id=rows.policy.id).delete(),
        "project_disabled": lambda: Project.objects.filter(id=rows.project.id).update(enabled=False),
        "principal_disabled": lambda: account.update(enabled=False),
        "credential_expired": lambda: RelayKey.objects.filter(id=key).update(expires_at=NOW),
        "credential_disabled": lambda: disable_key(key_id=key),
        "credential_revoked": lambda: revoke_key(key_id=key, now=NOW),
        "credential_deleted": lambda: RelayKey.objects.filter(id=key).delete(),
    }
    for code, change in changes.items():
        change()
        clear_cache()
        failure = failure_of(caller_of(rows))
        assert (failure.code, code.partition("_")[0] in failure.message) == (code, True)


def test_a_disabled_team_stops_its_projects_calls(rows: SimpleNamespace) -> None:
    Team.objects.filter(id=rows.team.id).update(enabled=False)
    assert failure_of(caller_of(rows)).code == "project_disabled"


def test_the_recorded_project_counts_even_when_it_is_gone(rows: SimpleNamespace) -> None:
    failure = failure_of(replace(caller_of(rows), project_id=uuid.uuid4()))
    assert (failure.code, failure.message) == ("project_disabled", "the project is gone")


def test_a_value_rotated_out_stops_its_calls_when_grace_is_over(rows: SimpleNamespace) -> None:
    caller = caller_of(rows)
    rotate_key(key_id=rows.relay_key.id, grace_seconds=60, now=NOW)
    recheck(caller, now=NOW + timedelta(seconds=59))
    # The clock decides at each call, whatever is kept.
    assert failure_of(caller, now=NOW + timedelta(seconds=60)).code == "credential_rotated"


def test_an_unknown_kind_of_credential_does_not_call(rows: SimpleNamespace) -> None:
    assert failure_of(replace(caller_of(rows), credential_kind="cookie")).code == "credential_deleted"


def test_names_are_known_even_when_the_credential_is_gone(rows: SimpleNamespace) -> None:
    caller = caller_of(rows)
    RelayKey.objects.all().delete()
    assert failure_of(caller).code == "credential_deleted"
    assert caller_snapshot(caller) == CallerSnapshot(
        policy=rows.policy.name, project=rows.project.name, team=rows.team.name
    )
