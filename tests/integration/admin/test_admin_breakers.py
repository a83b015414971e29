"""The admin's page of breakers: who sees it, what it says, and who may reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from routing.gate import breakers
from routing.upstream.send import send
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.admin_rows import owner_client, viewer_client
from tests.support.rows.catalog import make_catalog
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db

PAGE = "/admin/routing/hostkey/breakers/"


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    """Of two host keys, the first was refused."""
    catalog = make_catalog(upstream.url, host_key_values=("planted-one", "planted-two"))
    upstream.script(answers.status(401))
    send(call_of(catalog))
    return catalog


def states(catalog: SimpleNamespace) -> list[str]:
    return [found.state for found in breakers.breaker_states(catalog.host_keys)]


def test_the_page_says_which_breakers_are_open_and_the_list_of_host_keys_leads_to_it(
    catalog: SimpleNamespace,
) -> None:
    client = owner_client()
    assert PAGE in client.get(reverse("admin:routing_hostkey_changelist")).content.decode()
    page = client.get(PAGE).content.decode()
    assert all(host_key.name in page for host_key in catalog.host_keys)
    assert "<td>open</td>" in page.replace("\n", "")
    assert "<td>closed</td>" in page
    assert "<td>401</td>" in page
    assert page.count(">Reset<") == 1
    assert "planted" not in page


def test_a_reset_closes_the_breaker_and_is_logged(catalog: SimpleNamespace) -> None:
    answer = owner_client().post(PAGE, {"host_key": str(catalog.host_keys[0].id)}, follow=True)
    assert "is closed" in answer.content.decode()
    assert states(catalog) == ["closed", "closed"]
    assert LogEntry.objects.get().object_id == str(catalog.host_keys[0].id)


def test_viewers_see_breakers_and_reset_none(catalog: SimpleNamespace) -> None:
    client = viewer_client()
    page = client.get(PAGE)
    assert page.status_code == 200
    assert ">Reset<" not in page.content.decode()
    assert client.post(PAGE, {"host_key": str(catalog.host_keys[0].id)}).status_code == 403
    assert states(catalog) == ["open", "closed"]


@pytest.mark.parametrize("host_key", ["", "nothing", "00000000-0000-0000-0000-000000000000"])
def test_what_is_no_host_key_is_not_found(catalog: SimpleNamespace, host_key: str) -> None:
    assert owner_client().post(PAGE, {"host_key": host_key}).status_code == 404
