"""`manage.py apply --prune`: what goes, what is only disabled, and what is left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from routing.catalog.apply import apply_catalog
from routing.catalog.problems import CatalogRejected
from routing.credentials.relay_keys import create_key, revoke_key
from routing.credentials.tokens import delete_expired_tokens, mint_token
from routing.models import Host, HostKey, Model, Policy, Project, RelayKey, ServiceAccount, Team, User
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.yaml"
    path.write_text("{}")
    return path


def prune(path: Path, text: str = "{}") -> list[str]:
    path.write_text(text)
    return [str(change) for change in apply_catalog(path, prune=True)]


def test_everything_goes_in_the_order_of_dependence(file: Path) -> None:
    rows = make_catalog("http://127.0.0.1:9", suffix="1")
    rows.relay_key.delete()
    assert prune(file) == [
        "delete service_account account1",
        "delete project project1",
        "delete team team1",
        "delete policy policy1",
        "delete model echo-1",
        "delete model echo-1-embeddings",
        "delete model echo-1-messages",
        "delete model echo-1-responses",
        "delete pricing pricing1",
        "delete host_key hostkey1-0",
        "delete host host1",
        "delete provider provider1",
    ]
    assert prune(file) == []


def test_without_prune_nothing_goes(file: Path) -> None:
    make_catalog("http://127.0.0.1:9")
    assert apply_catalog(file) == []
    assert Model.objects.count() == 4


def test_an_account_with_keys_is_disabled_with_its_project_and_team(file: Path) -> None:
    make_catalog("http://127.0.0.1:9", suffix="1")
    assert prune(file)[:4] == [
        "disable service_account account1",
        "disable project project1",
        "disable team team1",
        "delete policy policy1",
    ]
    assert RelayKey.objects.count() == 1
    assert not ServiceAccount.objects.get().enabled
    assert not Project.objects.get().enabled
    assert not Team.objects.get().enabled
    assert prune(file) == []


def test_users_with_keys_are_disabled_and_others_go(file: Path) -> None:
    project = Project.objects.create(name="s", team=Team.objects.create(name="t"))
    holder = User.objects.create_user("holder", project=project)
    create_key(principal=holder)
    User.objects.create_user("other", project=project)
    assert prune(file) == ["disable user holder", "delete user other", "disable project s", "disable team t"]


def test_users_who_had_a_token_are_disabled_however_long_ago_it_was(file: Path) -> None:
    project = Project.objects.create(name="s", team=Team.objects.create(name="t"))
    user = User.objects.create_user("holder", project=project)
    now = timezone.now()
    mint_token(user, project=None, ttl_seconds=60, now=now - timedelta(days=400))
    delete_expired_tokens(now=now)
    assert prune(file)[0] == "disable user holder"


def test_staff_and_those_who_call_nothing_are_left_alone(file: Path) -> None:
    project = Project.objects.create(name="s", team=Team.objects.create(name="t"))
    User.objects.create_superuser("admin")
    User.objects.create_user("visitor")
    User.objects.create_user("operator", is_staff=True, project=project)
    kept = "teams: [{name: t}]\nprojects: [{name: s, team: t}]\n"
    assert prune(file, kept) == []
    with pytest.raises(CatalogRejected) as rejected:
        prune(file)
    assert str(rejected.value) == (
        "project s is not in the file, and still used by user operator: "
        "change that first, or keep it in the file"
    )
    assert Team.objects.get().enabled


def test_a_policy_that_a_key_has_of_its_own_is_not_deleted(file: Path) -> None:
    rows = make_catalog("http://127.0.0.1:9", suffix="1")
    key = create_key(principal=rows.service_account, policy=Policy.objects.create(name="own"))
    with pytest.raises(
        CatalogRejected, match=f"policy own is not in the file, and still used by relay key {key.id}"
    ):
        prune(file)
    assert Host.objects.exists()


def test_a_policy_that_only_a_revoked_key_had_of_its_own_is_deleted(file: Path) -> None:
    rows = make_catalog("http://127.0.0.1:9", suffix="1")
    key = create_key(principal=rows.service_account, policy=Policy.objects.create(name="own"))
    revoke_key(key_id=key.id, now=timezone.now())
    assert "delete policy own" in prune(file)
    assert RelayKey.objects.get(id=key.id).policy is None


def test_of_many_that_hold_a_row_five_are_named(file: Path) -> None:
    project = Project.objects.create(name="s", team=Team.objects.create(name="t"))
    for letter in "gfedcba":
        User.objects.create_user(letter, is_staff=True, project=project)
    with pytest.raises(CatalogRejected, match="used by user a, user b, user c, user d, user e: change that"):
        prune(file)


def test_a_file_that_is_pruned_by_refers_to_itself_alone(file: Path) -> None:
    make_catalog("http://127.0.0.1:9", suffix="1")
    with pytest.raises(CatalogRejected, match="unknown host host1: add it to hosts"):
        prune(file, "host_keys: [{name: k, host: host1, value_from: {env: X}}]")


def test_a_rows_place_can_be_taken_in_the_same_run(file: Path) -> None:
    make_catalog("http://127.0.0.1:9", suffix="1")
    Model.objects.get(name="echo-1").aliases.create(pattern="echo")
    changes = prune(
        file,
        """
        providers: [{name: provider1}]
        hosts: [{name: other, base_url: "http://127.0.0.1:9"}]
        host_keys: [{name: hostkey1-0, host: other, value: another}]
        models:
          - {name: echo-2, provider: provider1, aliases: [echo], bindings: [{host: other, adapter: openai}]}
        policies: [{name: policy1, host_keys: [hostkey1-0]}]
        """,
    )
    assert changes[:3] == [
        "create host other",
        "update host_key hostkey1-0: host, value",
        "create model echo-2",
    ]
    assert "delete host host1" in changes
    assert HostKey.objects.get().host.name == "other"
    assert Model.objects.get().aliases.get().pattern == "echo"
