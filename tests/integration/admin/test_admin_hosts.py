"""Hosts in the admin: query, headers and the way to authenticate; what is secret goes in and never comes out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry

from routing.catalog.apply import apply_catalog
from routing.catalog.problems import CatalogRejected
from routing.models import Host, HostHeader, HostKey
from routing.secrets.encryption import decrypt, encrypt
from tests.integration.admin.test_admin_catalog import rows, save
from tests.support.rows.admin_rows import make_admin_rows, owner_client, viewer_client

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from django.test import Client

pytestmark = pytest.mark.django_db

PLANTED = "planted-header-secret"


@pytest.fixture
def world() -> SimpleNamespace:
    return make_admin_rows()


@pytest.fixture
def client() -> Client:
    return owner_client()


def host(*headers: dict[str, Any], stored: int = 0, **fields: Any) -> dict[str, Any]:
    usual = {"base_url": "https://example.com", "query": "", "auth": "", "stream_usage": "on"}
    return usual | fields | rows("headers", *headers, stored=stored)


def header(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "text": "", "env_name": "", "file_path": "", "secret": ""} | fields


def page(client: Client, row: Host) -> str:
    return str(client.get(f"/admin/routing/host/{row.pk}/change/").content.decode())


def test_a_host_has_query_headers_and_auth(client: Client, world: SimpleNamespace) -> None:
    headers = (
        header("X-Team", text="search"),
        header("X-Env", env_name="SOME_VARIABLE"),
        header("X-File", file_path="/run/secrets/x"),
        header("X-Sealed", secret=PLANTED),
    )
    fields = host(*headers, name="new", query="api-version=2024-10-21\r\na = b=c", auth="api-key")
    assert save(client, "host", fields) == ""
    row = Host.objects.get(name="new")
    assert (row.query, row.auth) == ({"api-version": "2024-10-21", "a": "b=c"}, "api-key")
    assert row.stream_usage
    found = HostHeader.objects.filter(host=row).values_list("name", "text", "env_name", "file_path")
    assert set(found) == {
        ("X-Team", "search", "", ""),
        ("X-Env", "", "SOME_VARIABLE", ""),
        ("X-File", "", "", "/run/secrets/x"),
        ("X-Sealed", "", "", ""),
    }
    sealed = HostHeader.objects.get(name="X-Sealed").secret_encrypted
    assert decrypt(bytes(sealed or b"")) == PLANTED.encode()
    html = page(client, row)
    assert "api-version=2024-10-21" in html
    assert PLANTED not in html + str(list(LogEntry.objects.values()))


def test_text_under_the_name_of_a_credential_is_stored_encrypted(
    client: Client, world: SimpleNamespace
) -> None:
    assert save(client, "host", host(header("X-Access-Token", text=PLANTED), name="new")) == ""
    row = HostHeader.objects.get(host__name="new")
    assert row.text == ""
    assert decrypt(bytes(row.secret_encrypted or b"")) == PLANTED.encode()


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "X-Access-Token", "text": PLANTED},
        {"name": "X-Team", "secret": PLANTED},
        {"name": "no name", "secret": PLANTED},
        {"name": "", "text": PLANTED},
    ],
)
def test_a_secret_is_not_given_back_with_what_is_wrong(
    client: Client, world: SimpleNamespace, fields: dict[str, str]
) -> None:
    html = save(client, "host", host(header(**fields), name="new", base_url="ftp://x"))
    assert "http:// or https://" in html
    assert PLANTED not in html


def stored_header(world: SimpleNamespace, **fields: Any) -> HostHeader:
    return HostHeader.objects.create(host=world.host, name="X-Sealed", **fields)


def test_an_empty_secret_keeps_what_is_stored_and_a_new_one_replaces_it(
    client: Client, world: SimpleNamespace
) -> None:
    row = stored_header(world, secret_encrypted=encrypt(b"before"))
    mine = {"id": row.id, "host": world.host.id}
    assert save(client, "host", host(header("X-Sealed") | mine, stored=1), row=world.host) == ""
    row.refresh_from_db()
    assert decrypt(bytes(row.secret_encrypted or b"")) == b"before"

    renamed = header("X-Other") | mine
    assert save(client, "host", host(renamed, stored=1), row=world.host) == ""
    row = HostHeader.objects.get()
    assert (row.name, decrypt(bytes(row.secret_encrypted or b""))) == ("X-Other", b"before")

    changed = header("X-Other", secret="after") | {"id": row.id, "host": world.host.id}
    assert save(client, "host", host(changed, stored=1), row=world.host) == ""
    assert decrypt(bytes(HostHeader.objects.get().secret_encrypted or b"")) == b"after"


def test_a_variable_takes_the_place_of_what_is_stored(client: Client, world: SimpleNamespace) -> None:
    row = stored_header(world, secret_encrypted=encrypt(b"before"))
    changed = header("X-Sealed", env_name="SOME_VARIABLE") | {"id": row.id, "host": world.host.id}
    assert save(client, "host", host(changed, stored=1), row=world.host) == ""
    row = HostHeader.objects.get()
    assert (row.env_name, row.secret_encrypted) == ("SOME_VARIABLE", None)


def test_viewers_see_where_a_secret_is_and_not_what(world: SimpleNamespace) -> None:
    stored_header(world, secret_encrypted=encrypt(PLANTED.encode()))
    html = page(viewer_client(), world.host)
    assert "X-Sealed" in html
    assert "stored, encrypted" in html
    assert PLANTED not in html


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ([header("Host", text="x")], "set for each request"),
        ([header("Connection", text="x")], "about the connection"),
        ([header("Authorization", text="x")], "auth says which header does"),
        ([header("X-A", text="a\tb"), header("x-a", text="b")], "given twice"),
        ([header("X-A", text="a"), header("X-A", text="b")], "given twice"),
        ([header("X-A")], "expected text, value_from or value"),
        ([header("X-A", text="a", env_name="B")], "one of them"),
        ([header("X-A", env_name="A", file_path="/b")], "one of them"),
        ([header("X-A", text="é")], "ASCII characters in one line"),
        ([header("X-A", env_name="RELAY_MASTER_KEY")], "the deployment's own"),
        ([header("X-A", file_path="/proc/self/environ")], "none under /proc"),
        ([header("X-A", file_path="relative")], "absolute path"),
    ],
)
def test_headers_are_what_apply_takes(
    client: Client, world: SimpleNamespace, headers: list[dict[str, Any]], text: str
) -> None:
    assert text in save(client, "host", host(*headers, name="new"))
    assert not Host.objects.filter(name="new").exists()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"auth": "Host"}, "set for each request"),
        ({"auth": "Bearer"}, "auth: bearer without header"),
        ({"auth": "a b"}, "expected the name of a header"),
        ({"query": "name"}, "1-1000 printable characters"),
        ({"query": "=x"}, "1-1000 printable characters"),
        ({"query": "a=1\r\na=2"}, "given twice"),
    ],
)
def test_query_and_auth_are_what_apply_takes(
    client: Client, world: SimpleNamespace, fields: dict[str, Any], text: str
) -> None:
    assert text in save(client, "host", host(name="new", **fields))
    assert not Host.objects.filter(name="new").exists()


def test_a_query_that_the_page_could_not_give_back_is_refused_in_the_file(
    world: SimpleNamespace, tmp_path: Path
) -> None:
    """A page saved for another reason would have changed it unasked."""
    file = tmp_path / "catalog.json"
    for query in ({"a=b": "c"}, {" a": "c"}, {"a": "c "}):
        file.write_text(json.dumps({"hosts": [{"name": "new", "base_url": "https://x", "query": query}]}))
        with pytest.raises(CatalogRejected, match="expected 1-1000 printable characters"):
            apply_catalog(file)


def test_a_host_keys_header_is_the_hosts_where_another_authenticates(
    client: Client, world: SimpleNamespace
) -> None:
    fields = host(header("Authorization", text="Basic x"), name="new", auth="x-api-key")
    assert save(client, "host", fields) == ""


def test_a_key_without_a_value_is_for_hosts_that_are_sent_none(
    client: Client, world: SimpleNamespace
) -> None:
    fields = {"name": "new", "host": world.host.id, "env_name": "", "file_path": "", "secret": ""}
    assert "expected value_from or value, one of them" in save(client, "hostkey", fields)

    Host.objects.filter(pk=world.host.pk).update(auth="none")
    assert save(client, "hostkey", fields) == ""
    assert "nowhere: none is sent" in client.get("/admin/routing/hostkey/").content.decode()

    text = save(client, "host", host(auth="bearer"), row=world.host)
    assert "host_key new has no value" in text
    assert Host.objects.get(pk=world.host.pk).auth == "none"


def test_a_host_key_may_be_in_a_file(client: Client, world: SimpleNamespace) -> None:
    fields = {"name": "new", "host": world.host.id, "env_name": "", "secret": ""}
    assert save(client, "hostkey", fields | {"file_path": "/run/secrets/x"}) == ""
    assert HostKey.objects.get(name="new").file_path == "/run/secrets/x"
    assert "none under /proc" in save(client, "hostkey", fields | {"name": "x", "file_path": "/dev/x"})
