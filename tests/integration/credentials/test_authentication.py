from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from rest_framework.test import APIRequestFactory

from relaybatch.http.errors import Unauthenticated
from routing.credentials import queries
from routing.credentials.authentication import CredentialAuthentication
from routing.credentials.credential import authenticate
from routing.credentials.relay_keys import create_key, disable_key, hash_value, revoke_key, rotate_key
from routing.models import Policy, Project, RelayKey, ServiceAccount, Team, User
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 3, 12, tzinfo=UTC)


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def code_for(value: str) -> str:
    with pytest.raises(Unauthenticated) as refused:
        authenticate(value, now=NOW)
    assert value not in refused.value.message
    return refused.value.code


def test_a_key_is_its_accounts_credential_in_one_query(
    rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        credential = authenticate(rows.relay_key_value, now=NOW)
    assert credential.owner == hash_value(rows.relay_key_value)
    assert (credential.kind, credential.id) == ("key", str(rows.relay_key.id))
    assert (credential.principal_kind, credential.principal_id) == (
        "serviceaccount",
        str(rows.service_account.id),
    )
    assert credential.policy_id == rows.policy.id
    assert (credential.project_id, credential.team_id) == (rows.project.id, rows.team.id)
    assert credential.denial_code == ""


def test_a_users_key_is_a_credential_too(rows: SimpleNamespace) -> None:
    user = User.objects.create_user("ana", project=rows.project, policy=rows.policy)
    credential = authenticate(create_key(principal=user).value, now=NOW)
    assert (credential.principal_kind, credential.principal_id) == ("user", str(user.pk))
    assert credential.denial_code == ""
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert authenticate(create_key(principal=user).value, now=NOW).denial_code == "principal_disabled"


def test_the_keys_own_policy_comes_before_its_accounts(rows: SimpleNamespace) -> None:
    other = Policy.objects.create(name="other")
    issued = create_key(principal=rows.service_account, policy=other)
    assert authenticate(issued.value, now=NOW).policy_id == other.id


@pytest.mark.parametrize("value", ["sk-rb-unknown", "nonsense", "eyJh.eyJz.c2ln", "\xff\x00", "x" * 10_000])
def test_what_nobody_was_given_is_invalid(value: str) -> None:
    assert code_for(value) == "invalid_credential"


def test_each_way_out_of_use_has_its_code(rows: SimpleNamespace) -> None:
    value, key_id = rows.relay_key_value, rows.relay_key.id
    RelayKey.objects.filter(id=key_id).update(expires_at=NOW)
    assert code_for(value) == "credential_expired"
    disable_key(key_id=key_id)
    assert code_for(value) == "credential_disabled"
    revoke_key(key_id=key_id, now=NOW)
    assert code_for(value) == "credential_revoked"


def test_a_rotated_value_works_within_grace_as_its_own_owner(rows: SimpleNamespace) -> None:
    issued = rotate_key(key_id=rows.relay_key.id, grace_seconds=60, now=NOW)
    old = authenticate(rows.relay_key_value, now=NOW + timedelta(seconds=59))
    new = authenticate(issued.value, now=NOW)
    assert old.owner == hash_value(rows.relay_key_value)
    assert new.owner == hash_value(issued.value)
    assert old.id == new.id
    with pytest.raises(Unauthenticated) as refused:
        authenticate(rows.relay_key_value, now=NOW + timedelta(seconds=60))
    assert refused.value.code == "credential_rotated"


def test_a_rotation_without_grace_ends_the_old_value_at_once(rows: SimpleNamespace) -> None:
    rotate_key(key_id=rows.relay_key.id, now=NOW)
    assert code_for(rows.relay_key_value) == "credential_rotated"


@pytest.mark.parametrize(
    "denial_code", ["no_policy", "policy_disabled", "project_disabled", "principal_disabled"]
)
def test_a_key_that_may_not_create_is_still_known(rows: SimpleNamespace, denial_code: str) -> None:
    account = ServiceAccount.objects.filter(id=rows.service_account.id)
    {
        "no_policy": lambda: account.update(policy=None),
        "policy_disabled": lambda: Policy.objects.filter(id=rows.policy.id).update(enabled=False),
        "project_disabled": lambda: Project.objects.filter(id=rows.project.id).update(enabled=False),
        "principal_disabled": lambda: account.update(enabled=False),
    }[denial_code]()
    assert authenticate(rows.relay_key_value, now=NOW).denial_code == denial_code


def test_a_disabled_team_disables_its_projects(rows: SimpleNamespace) -> None:
    Team.objects.filter(id=rows.team.id).update(enabled=False)
    assert authenticate(rows.relay_key_value, now=NOW).denial_code == "project_disabled"


def test_a_request_carries_its_credential_in_either_header(rows: SimpleNamespace) -> None:
    requests = APIRequestFactory()
    for headers in ({"x-api-key": rows.relay_key_value}, rows.headers):
        user, auth = CredentialAuthentication().authenticate(requests.get("/v1/batches", headers=headers))
        assert user is auth
        assert auth.id == str(rows.relay_key.id)
    assert CredentialAuthentication().authenticate_header(requests.get("/v1/batches")) == "Bearer"


def test_a_key_is_looked_up_by_its_hashes_in_indexes(rows: SimpleNamespace) -> None:
    RelayKey.objects.bulk_create(
        RelayKey(service_account=rows.service_account, key_hash=f"{n:064}", previous_key_hash=f"{n:063}x")
        for n in range(2_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE routing_relaykey")
        cursor.execute(f"EXPLAIN {queries.KEY_QUERY}", {"hash": "0" * 64})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "relay_key_previous" in plan
    assert "key_hash" in plan
    assert "Seq Scan on routing_relaykey" not in plan
