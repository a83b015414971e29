"""Relay keys and host keys in the admin: a value is shown once or never, and nothing else keeps it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.utils import timezone

from relaybatch.http.errors import Unauthenticated
from routing.admin.callers.key_actions import KEY_ACTIONS
from routing.credentials.credential import authenticate
from routing.models import HostKey, RelayKey
from routing.secrets.host_key_secret import host_key_secret
from tests.support.rows.admin_rows import HOST_KEY_SECRET, make_admin_rows, owner_client, viewer_client

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.http import HttpResponse
    from django.test import Client

pytestmark = pytest.mark.django_db
KEYS = "/admin/routing/relaykey/"
HOST_KEYS = "/admin/routing/hostkey/"
VALUE = re.compile(r"sk-rb-[A-Za-z0-9_-]{64}")


@pytest.fixture
def world() -> SimpleNamespace:
    return make_admin_rows()


def add(client: Client, **fields: Any) -> Any:
    return client.post(f"{KEYS}add/", {"expires_at_0": "", "expires_at_1": ""} | fields)


def act(client: Client, key: RelayKey, verb: str, **fields: Any) -> Any:
    return client.post(f"{KEYS}{key.id}/do/{verb}/", {"seen": key.prefix} | fields)


def value_in(response: HttpResponse) -> str:
    [value] = set(VALUE.findall(response.content.decode()))
    return str(value)


def test_a_new_key_is_shown_once_and_works(world: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    client = owner_client()
    response = add(client, service_account=world.service_account.id)
    value = value_in(response)
    assert authenticate(value, now=timezone.now()).principal_id == str(world.service_account.id)
    assert "no-store" in response.headers["Cache-Control"]
    key = RelayKey.objects.exclude(id=world.relay_key.id).get()
    for url in (KEYS, f"{KEYS}{key.id}/change/", f"{KEYS}{key.id}/history/", "/admin/"):
        assert value not in client.get(url).content.decode()
    kept = [session.get_decoded() for session in Session.objects.all()]
    assert value not in str([kept, client.cookies, list(LogEntry.objects.values()), caplog.text])


def test_a_key_can_be_given_its_own_policy_and_an_end(world: SimpleNamespace) -> None:
    tomorrow = timezone.now() + timedelta(days=1)
    add(
        owner_client(),
        service_account=world.service_account.id,
        policy=world.policy.id,
        expires_at_0=f"{tomorrow:%Y-%m-%d}",
        expires_at_1="12:00:00",
    )
    key = RelayKey.objects.exclude(id=world.relay_key.id).get()
    assert key.policy == world.policy
    assert key.expires_at is not None
    assert key.expires_at.date() == tomorrow.date()


@pytest.mark.parametrize("both", [True, False])
def test_a_key_belongs_to_one_principal(world: SimpleNamespace, both: bool) -> None:
    client = owner_client()
    user = client.session["_auth_user_id"]
    fields = {"service_account": world.service_account.id, "user": user} if both else {}
    assert "choose one" in add(client, **fields).content.decode()
    assert RelayKey.objects.count() == 1


def test_a_key_cannot_have_expired_before_it_is_made(world: SimpleNamespace) -> None:
    response = add(
        owner_client(),
        service_account=world.service_account.id,
        expires_at_0="2020-01-01",
        expires_at_1="00:00",
    )
    assert "Expected a time in the future" in response.content.decode()


def test_rotating_shows_the_new_value_once_and_keeps_the_grace(world: SimpleNamespace) -> None:
    response = act(owner_client(), world.relay_key, "rotate", grace_seconds=60)
    now = timezone.now()
    assert authenticate(value_in(response), now=now).id == str(world.relay_key.id)
    assert authenticate(world.relay_key_value, now=now).id == str(world.relay_key.id)
    with pytest.raises(Unauthenticated):
        authenticate(world.relay_key_value, now=now + timedelta(seconds=61))


def test_a_rotation_that_the_browser_sends_twice_happens_once(world: SimpleNamespace) -> None:
    client = owner_client()
    value = value_in(act(client, world.relay_key, "rotate", grace_seconds=0))
    again = act(client, world.relay_key, "rotate", grace_seconds=0)
    assert "rotated meanwhile" in again.content.decode()
    assert not VALUE.search(again.content.decode())
    assert authenticate(value, now=timezone.now())


def test_keys_are_disabled_enabled_and_revoked(world: SimpleNamespace) -> None:
    client, key = owner_client(), world.relay_key
    act(client, key, "disable")
    assert not RelayKey.objects.get().enabled
    act(client, key, "enable")
    assert RelayKey.objects.get().enabled
    act(client, key, "revoke")
    assert RelayKey.objects.get().revoked_at is not None
    assert "create another" in act(client, key, "enable").content.decode()
    assert [entry.get_change_message() for entry in LogEntry.objects.order_by("id")] == [
        "Disabled.",
        "Enabled.",
        "Revoked.",
    ]


def test_asking_changes_nothing(world: SimpleNamespace) -> None:
    client = owner_client()
    for verb in ("rotate", "disable", "revoke"):
        assert client.get(f"{KEYS}{world.relay_key.id}/do/{verb}/").status_code == 200
    key = RelayKey.objects.get()
    assert (key.key_hash, key.enabled, key.revoked_at) == (world.relay_key.key_hash, True, None)
    assert client.get(f"{KEYS}{world.relay_key.id}/do/other/").status_code == 404


def test_the_question_says_what_follows_and_leads_back_to_the_key(world: SimpleNamespace) -> None:
    client = owner_client()
    html = client.get(f"{KEYS}{world.relay_key.id}/do/rotate/").content.decode()
    assert "Rotate this key?" in html
    assert "It gets a new value, shown once." in html
    assert 'name="grace_seconds"' in html
    assert 'value="Yes, rotate"' in html
    assert html.count(f'href="{KEYS}{world.relay_key.id}/change/"') == 2, "the breadcrumb and the way back"
    html = client.get(f"{KEYS}{world.relay_key.id}/do/revoke/").content.decode()
    assert 'name="grace_seconds"' not in html


def test_a_key_offers_what_its_state_allows(world: SimpleNamespace) -> None:
    client, url = owner_client(), f"{KEYS}{world.relay_key.id}/change/"

    def offered() -> list[str]:
        return re.findall(r'class="(\w+)link">', client.get(url).content.decode())

    assert [name for name in offered() if name in KEY_ACTIONS] == ["rotate", "disable", "revoke"]
    act(client, world.relay_key, "disable")
    assert [name for name in offered() if name in KEY_ACTIONS] == ["rotate", "enable", "revoke"]
    act(client, world.relay_key, "revoke")
    assert [name for name in offered() if name in KEY_ACTIONS] == []


@pytest.mark.parametrize("verb", ["rotate", "disable", "enable", "revoke"])
def test_viewers_do_nothing_to_keys(world: SimpleNamespace, verb: str) -> None:
    client = viewer_client()
    assert client.get(f"{KEYS}{world.relay_key.id}/do/{verb}/").status_code == 403
    assert act(client, world.relay_key, verb, grace_seconds=0).status_code == 403
    assert RelayKey.objects.get().key_hash == world.relay_key.key_hash


def save_host_key(client: Client, host_key: HostKey | None, **fields: Any) -> Any:
    url = f"{HOST_KEYS}{host_key.pk}/change/" if host_key else f"{HOST_KEYS}add/"
    usual = {"env_name": "", "secret": "", "rate_limit": "", "enabled": "on"}
    return client.post(url, usual | fields)


def test_a_host_keys_secret_goes_in_and_stays_in(world: SimpleNamespace) -> None:
    client = owner_client()
    response = save_host_key(client, None, name="new", host=world.host.id, secret="sk-just-typed")
    assert response.status_code == 302
    host_key = HostKey.objects.get(name="new")
    assert host_key_secret(host_key) == "sk-just-typed"
    assert b"sk-just-typed" not in bytes(host_key.secret_encrypted or b"")
    assert "sk-just-typed" not in client.get(f"{HOST_KEYS}{host_key.pk}/change/").content.decode()
    assert "sk-just-typed" not in str(list(LogEntry.objects.values()))


def test_an_empty_secret_keeps_what_is_stored_and_a_new_one_replaces_it(world: SimpleNamespace) -> None:
    client, host_key = owner_client(), world.host_keys[0]
    assert save_host_key(client, host_key, host=world.host.id).status_code == 302
    host_key.refresh_from_db()
    assert host_key_secret(host_key) == HOST_KEY_SECRET
    save_host_key(client, host_key, host=world.host.id, secret="another")
    host_key.refresh_from_db()
    assert host_key_secret(host_key) == "another"


def test_a_variables_name_takes_the_place_of_what_is_stored(world: SimpleNamespace) -> None:
    host_key = world.host_keys[0]
    save_host_key(owner_client(), host_key, host=world.host.id, env_name="UPSTREAM_KEY")
    host_key.refresh_from_db()
    assert (host_key.env_name, host_key.secret_encrypted) == ("UPSTREAM_KEY", None)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"secret": "sk-just typed"}, "ASCII characters without blanks"),
        ({"secret": "sk-just-typed", "env_name": "UPSTREAM_KEY"}, "one of them"),
        ({"secret": "sk-just-typed", "env_name": "no name"}, "name of an environment variable"),
        ({}, "one of them"),
    ],
)
def test_a_refused_host_key_is_not_stored_and_its_secret_not_given_back(
    world: SimpleNamespace, fields: dict[str, str], text: str
) -> None:
    response = save_host_key(owner_client(), None, name="new", host=world.host.id, **fields)
    html = response.content.decode()
    assert response.status_code == 200
    assert text in html
    assert "sk-just" not in html
    assert not HostKey.objects.filter(name="new").exists()
