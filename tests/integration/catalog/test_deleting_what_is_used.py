"""What is used is not deleted where that would widen what somebody may do, lift a limit or take a price away."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import ProtectedError
from django.utils import timezone

from relaybatch.http.errors import Forbidden
from routing.credentials.credential import authenticate, check_may_create
from routing.credentials.relay_keys import create_key, disable_key, revoke_key
from routing.models import (
    HostKey,
    Policy,
    Project,
    RateLimit,
    RelayKey,
    ServiceAccount,
    User,
)
from tests.support.rows.admin_rows import owner_client
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

pytestmark = pytest.mark.django_db

TAG = re.compile("<[^>]*>")
INSTEAD = "Disable it instead, or change first what uses it."
NO_POLICY = (
    "Without this policy, the keys below would fall back to that of their account or user, which may allow more."
    " Disable it instead, or first give these keys another policy, or revoke them."
)
NO_LIMIT = (
    "Without this rate limit, and also while it is disabled, what is below has no limit."
    " Give it another one first."
)
NO_PRICE = (
    "Without these prices, and also while they are disabled, what is called by the bindings below has no price and"
    " counts for no allowance. Give them other prices first."
)
# What is held -> by what, and what the page says.
HELD = {
    "a policy of a relay key": ("Relay key: sk-rb-", NO_POLICY),
    "a rate limit of a policy": ("Policy: policy1", NO_LIMIT),
    "a rate limit of a host key": ("Host key: hostkey1-0", NO_LIMIT),
    "a price list of a binding": ("Binding: echo-1, openai #0", NO_PRICE),
    "a team of a project": ("Project: project1", INSTEAD),
    "a project of a service account": ("Service account: account1", INSTEAD),
    "a project of a user": ("User: ana", INSTEAD),
    "a provider of a model": ("Model: echo-1", INSTEAD),
    "a host of a binding": ("Binding: echo-1, openai #0", INSTEAD),
}


@pytest.fixture
def world() -> SimpleNamespace:
    """Whatever a key of HELD needs, under that name."""
    world = make_catalog("http://127.0.0.1:9", suffix="1")
    own = Policy.objects.create(name="own")
    limit = RateLimit.objects.create(name="limit of a policy")
    limit_of_key = RateLimit.objects.create(name="limit of a host key")
    project_of_user = Project.objects.create(name="of a user", team=world.team)
    create_key(principal=world.service_account, policy=own)
    Policy.objects.filter(id=world.policy.id).update(rate_limit=limit)
    HostKey.objects.update(rate_limit=limit_of_key)
    User.objects.create_user("ana", project=project_of_user)
    world.held = {
        "a policy of a relay key": own,
        "a rate limit of a policy": limit,
        "a rate limit of a host key": limit_of_key,
        "a price list of a binding": world.pricing,
        "a team of a project": world.team,
        "a project of a service account": world.project,
        "a project of a user": project_of_user,
        "a provider of a model": world.provider,
        "a host of a binding": world.host,
    }
    return world


@pytest.fixture
def client() -> Client:
    return owner_client()


def text_of(response: Any) -> str:
    assert response.status_code == 200
    text = TAG.sub("", html.unescape(response.content.decode()))
    assert "Cannot delete" in text
    return text


@pytest.mark.parametrize("what", HELD)
def test_the_rows_refuse_it(world: SimpleNamespace, what: str) -> None:
    row = world.held[what]
    with pytest.raises(ProtectedError):
        row.delete()
    with pytest.raises(ProtectedError):
        type(row).objects.filter(pk=row.pk).delete()


@pytest.mark.parametrize("what", HELD)
@pytest.mark.parametrize("method", ["get", "post"])
def test_the_admin_says_what_holds_it_and_what_to_do_instead(
    world: SimpleNamespace, client: Client, what: str, method: str
) -> None:
    row = world.held[what]
    url = f"/admin/routing/{row._meta.model_name}/{row.pk}/delete/"
    page = text_of(client.post(url, {"post": "yes"}) if method == "post" else client.get(url))
    holder, mend = HELD[what]
    assert holder in page
    assert mend in page
    assert type(row).objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("what", HELD)
@pytest.mark.parametrize("confirmed", [{}, {"post": "yes"}])
def test_a_deletion_of_several_says_so_as_well(
    world: SimpleNamespace, client: Client, what: str, confirmed: dict[str, str]
) -> None:
    """One of those that are selected is used by nobody."""
    row = world.held[what]
    other = _unused_like(row)
    selected = {"action": "delete_selected", ACTION_CHECKBOX_NAME: [str(row.pk), str(other.pk)]}
    page = text_of(client.post(f"/admin/routing/{row._meta.model_name}/", selected | confirmed))
    holder, mend = HELD[what]
    assert holder in page
    assert mend in page
    assert type(row).objects.filter(pk__in=[row.pk, other.pk]).count() == 2


def test_what_nobody_uses_can_be_deleted(world: SimpleNamespace, client: Client) -> None:
    unused = Policy.objects.create(name="unused")
    page = client.get(f"/admin/routing/policy/{unused.pk}/delete/").content.decode()
    assert "Are you sure" in page
    assert "instead" not in page
    assert client.post(f"/admin/routing/policy/{unused.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Policy.objects.filter(pk=unused.pk).exists()


def test_a_disabled_key_holds_its_policy_since_it_may_be_enabled_again(world: SimpleNamespace) -> None:
    disable_key(key_id=RelayKey.objects.get(policy__isnull=False).id)
    with pytest.raises(ProtectedError):
        world.held["a policy of a relay key"].delete()


def test_a_revoked_key_holds_nothing(world: SimpleNamespace, client: Client) -> None:
    """It is never to work again."""
    own, key = world.held["a policy of a relay key"], RelayKey.objects.get(policy__isnull=False)
    revoke_key(key_id=key.id, now=timezone.now())
    assert client.post(f"/admin/routing/policy/{own.pk}/delete/", {"post": "yes"}).status_code == 302
    key.refresh_from_db()
    assert (key.policy, Policy.objects.filter(pk=own.pk).exists()) == (None, False)


def test_whoever_has_lost_the_policy_of_an_account_or_a_user_may_create_nothing(
    world: SimpleNamespace,
) -> None:
    """These may be deleted: nothing is wider without them."""
    user = User.objects.create_user("ben", project=world.project, policy=world.policy)
    values = [world.relay_key_value, create_key(principal=user).value]
    world.policy.delete()
    assert ServiceAccount.objects.get().policy is None
    for value in values:
        with pytest.raises(Forbidden) as rejected:
            check_may_create(authenticate(value))
        assert rejected.value.code == "no_policy"


def _unused_like(row: Any) -> Any:
    fields: dict[str, Any] = {"name": "unused"}
    for name in ("team", "base_url", "currency"):
        if hasattr(row, name):
            fields[name] = getattr(row, name)
    return type(row).objects.create(**fields)
