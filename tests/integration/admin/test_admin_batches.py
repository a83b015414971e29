"""Batches in the admin: what is shown, and who may cancel and retry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from batches.admin.batch_actions import RETRY
from batches.models import Batch, BatchItem
from routing.credentials.relay_keys import rotate_key
from routing.models import User
from tests.support.rows.admin_rows import (
    logged_in_client,
    make_admin_rows,
    owner_client,
    viewer_client,
)
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
BATCHES = "/admin/batches/batch/"
ITEMS = "/admin/batches/batchitem/"


@pytest.fixture
def world() -> SimpleNamespace:
    return make_admin_rows()


def page(client: Client, url: str, query: dict[str, Any] | None = None) -> str:
    response = client.get(url, query or {})
    assert response.status_code == 200, response.headers
    return response.content.decode()


def listed(client: Client, **query: Any) -> set[str]:
    response = client.get(BATCHES, query)
    return {str(batch.id) for batch in response.context["cl"].result_list}


def cancel_url(batch: Batch) -> str:
    return reverse("admin:batches_batch_cancel", args=[batch.id])


def test_the_list_says_how_far_whose_and_how_dear(world: SimpleNamespace) -> None:
    html = page(owner_client(), BATCHES)
    assert "1 completed, 1 discarded" in html
    assert "3 available" in html
    assert f"{world.relay_key.prefix}… {world.service_account.name}" in html
    assert world.policy.name in html
    assert world.project.name in html
    assert "0.00054 USD" in html


def test_the_list_needs_as_many_queries_for_many_batches_as_for_few(
    world: SimpleNamespace, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client = owner_client()
    for _ in range(20):
        submit(world, chat_body())
    with django_assert_max_num_queries(13):
        page(client, BATCHES)


@pytest.mark.parametrize("batch", ["open_batch", "ended_batch"])
def test_a_batch_needs_few_queries_however_many_items(
    world: SimpleNamespace, django_assert_max_num_queries: DjangoAssertNumQueries, batch: str
) -> None:
    client = owner_client()
    with django_assert_max_num_queries(14):
        page(client, f"{BATCHES}{getattr(world, batch).id}/change/")


def test_batches_are_narrowed_by_state_dialect_owner_and_project(world: SimpleNamespace) -> None:
    client, opened, ended = owner_client(), str(world.open_batch.id), str(world.ended_batch.id)
    assert listed(client, state="in_progress") == {opened}
    assert listed(client, state="ended") == {ended}
    assert listed(client, state="canceling") == set()
    assert listed(client, dialect="relay") == {opened, ended}
    assert listed(client, dialect="messages") == set()
    assert listed(client, owner=world.relay_key.prefix) == {opened, ended}
    assert listed(client, owner=world.service_account.name) == {opened, ended}
    assert listed(client, owner="sk-rb-nobody") == set()
    assert listed(client, project=world.project.name) == {opened, ended}
    assert listed(client, project="another") == set()


def test_batches_are_found_by_their_id_and_by_whose_they_are(world: SimpleNamespace) -> None:
    client, opened, ended = owner_client(), str(world.open_batch.id), str(world.ended_batch.id)
    assert listed(client, q=opened) == {opened}
    assert listed(client, q=f"batch_{world.ended_batch.id.hex}") == {ended}
    assert listed(client, q=world.service_account.name) == {opened, ended}
    assert listed(client, q="nothing of that name") == set()


def test_an_owner_whose_key_was_rotated_or_deleted_still_has_a_name(world: SimpleNamespace) -> None:
    client = owner_client()
    rotate_key(key_id=world.relay_key.id, now=timezone.now())
    assert f"{world.service_account.name}, before a rotation" in page(client, BATCHES)
    world.relay_key.delete()
    assert f"key {world.relay_key.key_hash[:8]}…, deleted or rotated" in page(client, BATCHES)


def test_items_come_by_the_hundred_and_from_any_index(world: SimpleNamespace) -> None:
    batch = submit(world, *[chat_body()] * 250)
    client, url = owner_client(), f"{BATCHES}{batch.id}/change/"
    first = client.get(url).context["items"]
    assert [item.idx for item in first.items] == list(range(100))
    assert first.next_query == "item_state=&from_idx=100"
    last = client.get(url, {"from_idx": "200"}).context["items"]
    assert [item.idx for item in last.items] == list(range(200, 250))
    assert last.next_query == ""


def test_an_items_attempts_are_shown_beside_those_that_were_excused(world: SimpleNamespace) -> None:
    client, item = owner_client(), world.items[1]
    BatchItem.objects.filter(id=item.id).update(attempt=4100, excused=3700)
    of_batch = page(client, f"{BATCHES}{world.ended_batch.id}/change/")
    assert "<th>Attempt</th><th>Excused</th>" in of_batch
    assert "<td>4100</td><td>3700</td>" in "".join(of_batch.split())
    assert 'field-attempt">4100</td><td class="field-excused">3700<' in page(client, ITEMS)
    of_item = page(client, f"{ITEMS}{item.id}/change/")
    assert "4100" in of_item
    assert "3700" in of_item


def test_items_are_narrowed_by_state(world: SimpleNamespace) -> None:
    url = f"{BATCHES}{world.ended_batch.id}/change/"
    response = owner_client().get(url, {"item_state": "discarded"})
    assert [item.idx for item in response.context["items"].items] == [1]
    assert "batch item: upstream status 400" in response.content.decode()


def test_a_batch_is_cancelled_after_a_question(world: SimpleNamespace) -> None:
    client, url = owner_client(), cancel_url(world.open_batch)
    assert "3 available" in page(client, url)
    assert Batch.objects.get(id=world.open_batch.id).cancel_initiated_at is None
    assert client.post(url).status_code == 302
    batch = Batch.objects.get(id=world.open_batch.id)
    assert (batch.processing_status, batch.final_counts) == ("ended", {"cancelled": 3})
    assert LogEntry.objects.get().object_id == str(batch.id)


def test_selected_batches_are_cancelled_after_a_question(world: SimpleNamespace) -> None:
    client = owner_client()
    chosen = {"action": "cancel_selected", "_selected_action": [str(world.open_batch.id)]}
    assert "Yes, cancel" in client.post(BATCHES, chosen).content.decode()
    assert Batch.objects.get(id=world.open_batch.id).cancel_initiated_at is None
    assert client.post(BATCHES, chosen | {"confirmed": "yes"}).status_code == 302
    assert Batch.objects.get(id=world.open_batch.id).processing_status == "ended"


def test_the_question_names_the_selected_batches_and_sends_them_again(world: SimpleNamespace) -> None:
    ids = [str(world.open_batch.id), str(world.ended_batch.id)]
    html = (
        owner_client().post(BATCHES, {"action": "cancel_selected", "_selected_action": ids}).content.decode()
    )
    assert "Cancel 2 batches?" in html
    assert "3 available" in html
    assert "1 completed, 1 discarded" in html
    hidden = set(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', html))
    assert hidden >= {
        ("action", "cancel_selected"),
        *(("_selected_action", batch_id) for batch_id in ids),
        ("confirmed", "yes"),
    }


def test_only_so_many_batches_are_retried_at_once(world: SimpleNamespace) -> None:
    batches = [submit(world, chat_body()) for _ in range(RETRY.max_batches + 1)]
    chosen = {
        "action": "retry_selected",
        "_selected_action": [str(batch.id) for batch in batches],
        "confirmed": "yes",
    }
    before = Batch.objects.count()
    html = owner_client().post(BATCHES, chosen, follow=True).content.decode()
    assert "Select at most 20 batches." in html
    assert Batch.objects.count() == before


@pytest.mark.parametrize(
    ("action", "batch", "link"),
    [("cancel", "open_batch", "Cancel this batch"), ("retry", "ended_batch", "Retry failed items")],
)
def test_viewers_cancel_and_retry_nothing(world: SimpleNamespace, action: str, batch: str, link: str) -> None:
    chosen = getattr(world, batch)
    url = {"cancel": cancel_url, "retry": retry_url}[action](chosen)
    client = viewer_client()
    assert client.get(url).status_code == 403
    assert client.post(url).status_code == 403
    by_action = {"action": f"{action}_selected", "_selected_action": [str(chosen.id)], "confirmed": "yes"}
    client.post(BATCHES, by_action)
    assert Batch.objects.get(id=world.open_batch.id).cancel_initiated_at is None
    assert Batch.objects.count() == 2
    assert link in page(owner_client(), f"{BATCHES}{chosen.id}/change/")
    assert link not in page(client, f"{BATCHES}{chosen.id}/change/")


def test_who_may_change_batches_may_cancel_them(world: SimpleNamespace) -> None:
    user = User.objects.create_user(username="operator", is_staff=True)
    codenames = ("view_batch", "change_batch")
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    assert logged_in_client(user).post(cancel_url(world.open_batch)).status_code == 302
    assert Batch.objects.get(id=world.open_batch.id).processing_status == "ended"


def retry_url(batch: Batch) -> str:
    return reverse("admin:batches_batch_retry", args=[batch.id])


def test_what_failed_is_retried_after_a_question_as_a_batch_of_its_owner(world: SimpleNamespace) -> None:
    client, url = owner_client(), retry_url(world.ended_batch)
    assert "Retry failed items" in page(client, f"{BATCHES}{world.ended_batch.id}/change/")
    assert "1 completed, 1 discarded" in page(client, url)
    assert Batch.objects.count() == 2
    answer = client.post(url, follow=True)
    new = Batch.objects.latest("created_at")
    assert f"/admin/batches/batch/{new.id}/change/" in answer.content.decode()
    assert (new.total_items, new.metadata) == (1, {"retry_of": str(world.ended_batch.id)})
    recorded = ("owner_id", "policy_id", "project_id", "principal_id", "credential_kind", "credential_id")
    assert [getattr(new, name) for name in recorded] == [
        getattr(world.ended_batch, name) for name in recorded
    ]
    assert Client().get(f"/v1/batches/{new.id}", headers=world.headers).status_code == 200
    assert [entry.object_id for entry in LogEntry.objects.all()] == [str(world.ended_batch.id)]


def test_of_selected_batches_those_that_cannot_be_retried_are_named(world: SimpleNamespace) -> None:
    client = owner_client()
    chosen = {
        "action": "retry_selected",
        "_selected_action": [str(world.open_batch.id), str(world.ended_batch.id)],
    }
    assert "Yes, retry" in client.post(BATCHES, chosen).content.decode()
    html = client.post(BATCHES, chosen | {"confirmed": "yes"}, follow=True).content.decode()
    assert f"{world.open_batch.id}: This batch has not ended yet" in html
    assert f"/admin/batches/batch/{Batch.objects.latest('created_at').id}/change/" in html
    assert Batch.objects.count() == 3


def test_nothing_that_failed_is_said(world: SimpleNamespace) -> None:
    BatchItem.objects.filter(batch=world.ended_batch, idx=1).update(state="expired", error_code="expired")
    html = owner_client().post(retry_url(world.ended_batch), follow=True).content.decode()
    assert "No item of this batch failed" in html
    assert Batch.objects.count() == 2
