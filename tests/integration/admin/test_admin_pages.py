"""Every page of the admin opens for whom it should, and none shows what it must not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from batches.models import Batch, BatchItem
from routing.models import HostKey, RelayKey
from tests.support.rows.admin_rows import make_admin_rows, owner_client, planted_secrets, viewer_client
from usage.models import UsageEvent

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.db.models import Model

pytestmark = pytest.mark.django_db
MODELS = [pytest.param(model, id=model._meta.label_lower) for model in admin.site._registry]
LOGINS = {"routing.user", "auth.group"}
LINK = re.compile(r'(?:href|action)="([^"#]+)"')


@pytest.fixture
def world() -> SimpleNamespace:
    return make_admin_rows()


def changelist(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def change(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


@pytest.mark.parametrize("model", MODELS)
def test_every_list_and_every_row_opens_for_the_owner(world: SimpleNamespace, model: Any) -> None:
    client = owner_client()
    assert client.get(changelist(model)).status_code == 200
    row = model._default_manager.first()
    assert row is not None, "the world has one of everything"
    assert client.get(change(row)).status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_viewers_see_everything_but_logins(world: SimpleNamespace, model: Any) -> None:
    client = viewer_client()
    expected = 403 if model._meta.label_lower in LOGINS else 200
    assert client.get(changelist(model)).status_code == expected
    assert client.get(change(model._default_manager.first())).status_code == expected


@pytest.mark.parametrize("model", MODELS)
def test_viewers_add_change_and_delete_nothing(world: SimpleNamespace, model: Any) -> None:
    client, row = viewer_client(), model._default_manager.first()
    before = model._default_manager.count()
    assert client.get(changelist(model) + "add/").status_code == 403
    assert client.post(changelist(model) + "add/", {"name": "x"}).status_code == 403
    assert client.post(change(row), {"name": "x"}).status_code == 403
    assert client.post(reverse(_deletion(model), args=[row.pk]), {"post": "yes"}).status_code == 403
    assert model._default_manager.count() == before


@pytest.mark.parametrize("model", MODELS)
def test_strangers_are_sent_to_the_login(world: SimpleNamespace, model: Any) -> None:
    response = Client().get(changelist(model))
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("model", [Batch, BatchItem, UsageEvent])
def test_not_even_the_owner_adds_changes_or_deletes_what_happened(world: SimpleNamespace, model: Any) -> None:
    client, row = owner_client(), model._default_manager.first()
    assert client.get(changelist(model) + "add/").status_code == 403
    assert client.post(change(row), {}).status_code == 403
    assert client.post(reverse(_deletion(model), args=[row.pk]), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("who", [owner_client, viewer_client])
def test_no_page_that_links_lead_to_shows_a_secret_a_prompt_or_an_answer(
    world: SimpleNamespace, who: Any
) -> None:
    client = who()
    seen: set[str] = set()
    waiting = ["/admin/"]
    while waiting:
        url = waiting.pop()
        response = client.get(url)
        assert response.status_code in (200, 302, 403), url
        html = response.content.decode()
        for text in planted_secrets(world):
            assert text not in html, f"{text} in {url}"
        found = (link.replace("&amp;", "&") for link in LINK.findall(html))
        absolute = {link if link.startswith("/") else url.partition("?")[0] + link for link in found}
        new = {link for link in absolute if _is_page(link) and _variants(seen, link) < 2} - seen
        seen |= new
        waiting += new
    assert len({url.partition("?")[0] for url in seen}) > 40
    assert any("item_state" in url or "/batchitem/" in url for url in seen)


def _variants(seen: set[str], link: str) -> int:
    """How many filters of the same list were followed already: all their combinations would be thousands."""
    path = link.partition("?")[0]
    return sum(url.partition("?")[0] == path for url in seen)


def _is_page(link: str) -> bool:
    """The payloads are the one page that may show them; leaving would end the walk, sorting doubles it."""
    leave_out = (
        "/payloads/",
        "/logout/",
        "/delete/",
        "/history/",
        "/autocomplete/",
        "/jsi18n/",
        "o=",
        "_facets",
        "http:",
    )
    return link.startswith("/admin/") and not any(part in link for part in leave_out)


def _deletion(model: type[Model]) -> str:
    return f"admin:{model._meta.app_label}_{model._meta.model_name}_delete"


def test_hidden_columns_cannot_be_asked_about_in_the_address(world: SimpleNamespace) -> None:
    client = owner_client()
    for model, lookup in (
        (HostKey, "secret_encrypted__startswith"),
        (BatchItem, "upstream_error__contains"),
        (BatchItem, "custom_id__contains"),
        (UsageEvent, "owner__startswith"),
    ):
        assert client.get(changelist(model), {lookup: "a"}).status_code == 400


@pytest.mark.parametrize("text", ["\0", "\u2028'", "9" * 25], ids=["nul", "quote", "digits"])
@pytest.mark.parametrize("model", [Batch, BatchItem, UsageEvent, RelayKey])
def test_odd_addresses_are_no_server_errors(world: SimpleNamespace, model: Any, text: str) -> None:
    client, url = owner_client(), changelist(model)
    filters: list[Any] = [*admin.site._registry[model].list_filter]
    names = [entry.parameter_name for entry in filters if not isinstance(entry, str)]
    for name in ["q", "p", *names]:
        assert client.get(url, {name: text}).status_code in (200, 302, 400), name
    assert client.get(f"{url}{'x' * 40}/change/").status_code in (302, 404)
    assert client.get(change(model._default_manager.first()), {"from_idx": text, "item_state": text})


def test_the_front_page_says_what_it_is(world: SimpleNamespace) -> None:
    html = owner_client().get("/admin/").content.decode()
    titles = re.findall(r'<a href="[^"]+" class="section"[^>]*>\s*([^<]+?)\s*</a>', html)
    assert "Relaybatch" in html
    assert titles == ["Batches", "Usage", "Callers", "Policies", "Catalog"]
