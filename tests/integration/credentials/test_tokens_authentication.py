from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import jwt
import pytest
from django.utils import timezone

from batches.models import Batch
from relaybatch.http.errors import Unauthenticated
from routing.calls.call import Caller
from routing.calls.failures import CallFailed
from routing.credentials.credential import authenticate
from routing.credentials.recheck import CallerSnapshot, clear_cache, recheck
from routing.credentials.tokens import mint_token, revoke_all_tokens, revoke_token
from routing.models import InferenceToken, Policy, Project, Team, User
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.submissions import submit
from tests.support.rows.tokens import make_token_caller, with_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

    from routing.credentials.credential import Credential

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_token_caller(make_catalog("http://127.0.0.1:9"))


def known(rows: SimpleNamespace) -> Credential:
    return authenticate(rows.minted.token, now=timezone.now())


def code_for(rows: SimpleNamespace, *, now: datetime | None = None) -> str:
    with pytest.raises(Unauthenticated) as refused:
        authenticate(rows.minted.token, now=now or timezone.now())
    return refused.value.code


def caller_of(rows: SimpleNamespace) -> Caller:
    credential = known(rows)
    return Caller(
        owner=credential.owner,
        credential_kind=credential.kind,
        credential_id=credential.id,
        principal_kind=credential.principal_kind,
        principal_id=credential.principal_id,
        policy_id=rows.policy.id,
        project_id=rows.project.id,
        team_id=rows.team.id,
    )


def failure_code(caller: Caller, *, now: datetime | None = None) -> str:
    with pytest.raises(CallFailed) as failed:
        recheck(caller, now=now or timezone.now())
    assert not failed.value.failure.retryable
    return failed.value.failure.code


def test_a_token_is_its_users_credential_in_two_queries(
    rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(2):
        credential = known(rows)
    assert (credential.owner, credential.kind) == (f"user:{rows.user.pk}", "token")
    assert credential.id == str(rows.minted.jti)
    assert (credential.principal_kind, credential.principal_id) == ("user", str(rows.user.pk))
    assert (credential.policy_id, credential.project_id) == (rows.policy.id, rows.project.id)
    assert (credential.team_id, credential.denial_code) == (rows.team.id, "")


def test_a_token_of_another_project_counts_for_that_one(rows: SimpleNamespace) -> None:
    other = make_caller(rows).project
    rows.minted = mint_token(rows.user, project=other, ttl_seconds=60, now=timezone.now())
    credential = known(rows)
    assert (credential.project_id, credential.team_id) == (other.id, other.team_id)
    assert jwt.decode(rows.minted.token, options={"verify_signature": False})["prj"] == str(other.id)


def test_a_token_out_of_use_says_why(rows: SimpleNamespace) -> None:
    assert code_for(rows, now=rows.minted.expires_at) == "credential_expired"
    assert revoke_token(jti=rows.minted.jti, now=timezone.now()) == 1
    assert code_for(rows) == "credential_revoked"
    rows = with_token(rows)
    assert revoke_all_tokens(rows.user, now=timezone.now()) == 1
    assert code_for(rows) == "credential_revoked"


def test_a_raised_version_revokes_by_itself(rows: SimpleNamespace) -> None:
    User.objects.filter(pk=rows.user.pk).update(token_version=1)
    assert code_for(rows) == "credential_revoked"


def test_a_token_whose_row_was_removed_is_expired_or_unknown(rows: SimpleNamespace) -> None:
    InferenceToken.objects.all().delete()
    assert code_for(rows, now=rows.minted.expires_at) == "credential_expired"
    assert code_for(rows) == "invalid_credential"


def test_a_token_of_a_deleted_user_is_unknown(rows: SimpleNamespace) -> None:
    User.objects.filter(pk=rows.user.pk).delete()
    assert code_for(rows) == "invalid_credential"


@pytest.mark.parametrize(
    ("denial_code", "change"),
    [
        ("no_policy", lambda rows: User.objects.update(policy=None)),
        ("policy_disabled", lambda rows: Policy.objects.update(enabled=False)),
        ("project_disabled", lambda rows: Project.objects.update(enabled=False)),
        ("project_disabled", lambda rows: Team.objects.update(enabled=False)),
        ("principal_disabled", lambda rows: User.objects.update(is_active=False)),
    ],
)
def test_a_token_that_may_not_create_is_still_known_and_reads(
    rows: SimpleNamespace, client: Client, denial_code: str, change: Callable[[SimpleNamespace], object]
) -> None:
    batch = submit(rows)
    change(rows)
    assert known(rows).denial_code == denial_code
    assert client.get(f"/v1/batches/{batch.id}", headers=rows.headers).status_code == 200
    created = client.post(
        "/v1/batches", {"requests": [{}]}, content_type="application/json", headers=rows.headers
    )
    assert (created.status_code, created.json()["error"]["code"]) == (403, denial_code)


def test_a_project_that_is_gone_refuses_creation_and_nothing_else(rows: SimpleNamespace) -> None:
    deleted = make_caller(rows)
    project_id = deleted.project.id
    rows.minted = mint_token(rows.user, project=deleted.project, ttl_seconds=60, now=timezone.now())
    deleted.service_account.delete()
    deleted.project.delete()
    credential = known(rows)
    assert (credential.denial_code, credential.project_id) == ("project_disabled", project_id)


def test_any_token_of_a_user_reads_what_another_submitted_and_no_other_users(
    rows: SimpleNamespace, client: Client
) -> None:
    batch = submit(rows)
    stored = Batch.objects.select_related("owner").get(id=batch.id)
    assert (stored.owner.name, stored.credential_kind) == (f"user:{rows.user.pk}", "token")
    assert stored.credential_id == str(rows.minted.jti)
    path = f"/v1/batches/{batch.id}"
    assert client.get(path, headers=with_token(rows).headers).status_code == 200
    assert client.get(path, headers=make_token_caller(rows).headers).status_code == 404


def test_a_token_in_good_standing_calls_in_one_query(
    rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    caller = caller_of(rows)
    with django_assert_num_queries(1):
        standing = recheck(caller)
        assert recheck(caller) == standing
    assert standing == CallerSnapshot(policy=rows.policy.name, project=rows.project.name, team=rows.team.name)


def test_a_tokens_expiry_is_judged_at_each_call(rows: SimpleNamespace) -> None:
    caller = caller_of(rows)
    recheck(caller, now=rows.minted.expires_at - timedelta(seconds=1))
    assert failure_code(caller, now=rows.minted.expires_at) == "credential_expired"


def test_each_way_out_of_use_fails_a_tokens_call(rows: SimpleNamespace) -> None:
    caller = caller_of(rows)
    user, tokens = User.objects.filter(pk=rows.user.pk), InferenceToken.objects.filter(jti=rows.minted.jti)
    changes: list[tuple[str, Callable[[], object]]] = [
        ("policy_disabled", lambda: Policy.objects.update(enabled=False)),
        ("project_disabled", lambda: Project.objects.update(enabled=False)),
        ("principal_disabled", lambda: user.update(is_active=False)),
        ("credential_revoked", lambda: user.update(token_version=1)),
        ("credential_expired", lambda: tokens.delete()),
        ("credential_deleted", lambda: user.delete()),
    ]
    for code, change in changes:
        change()
        clear_cache()
        assert failure_code(caller) == code


def test_the_policy_of_the_batch_counts_not_that_which_the_user_has_now(rows: SimpleNamespace) -> None:
    caller = caller_of(rows)
    User.objects.update(policy=None)
    recheck(caller)
