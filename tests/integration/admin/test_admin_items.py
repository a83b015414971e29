"""Items, their payloads and workers in the admin: what is shown, and who may open a payload."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission

from batches.models import BatchItem
from relaybatch.admin.large_lists import MAX_COUNTED_ROWS, LargePaginator
from routing.models import User
from tests.support.rows.admin_rows import (
    ANSWER,
    PROMPT,
    UPSTREAM_ERROR,
    logged_in_client,
    make_admin_rows,
    owner_client,
    viewer_client,
)
from tests.support.rows.submissions import chat_body, submit

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
ITEMS = "/admin/batches/batchitem/"


@pytest.fixture
def world() -> SimpleNamespace:
    return make_admin_rows()


def page(client: Client, url: str, query: dict[str, Any] | None = None) -> str:
    response = client.get(url, query or {})
    assert response.status_code == 200, response.headers
    return response.content.decode()


def test_payloads_are_shown_escaped_to_who_may_and_it_is_on_record(
    world: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="audit")
    client = owner_client()
    html = page(client, f"{ITEMS}{world.items[0].id}/payloads/")
    assert PROMPT in html
    assert ANSWER in html
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert(1)" not in html
    [line] = [record for record in caplog.records if record.name == "audit"]
    assert (line.getMessage(), vars(line)["user"]) == ("item payloads opened", "owner")
    assert (vars(line)["batch_id"], vars(line)["item_id"]) == (world.items[0].batch_id, world.items[0].id)
    assert UPSTREAM_ERROR in page(client, f"{ITEMS}{world.items[1].id}/payloads/")


def test_payloads_need_a_permission_of_their_own(world: SimpleNamespace) -> None:
    client, item = viewer_client(), world.items[0]
    assert client.get(f"{ITEMS}{item.id}/payloads/").status_code == 403
    assert client.get(f"{ITEMS}{item.id}/payloads/request/").status_code == 403
    user = User.objects.get(username="viewer")
    user.user_permissions.add(Permission.objects.get(codename="view_payload"))
    assert logged_in_client(user).get(f"{ITEMS}{item.id}/payloads/").status_code == 200
    user.groups.clear()
    assert logged_in_client(user).get(f"{ITEMS}{item.id}/payloads/").status_code == 403


def test_a_large_payload_is_shown_in_part_and_downloaded_whole(
    world: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="audit")
    body = chat_body("a" * 100_000)
    item = BatchItem.objects.get(batch=submit(world, body))
    client = owner_client()
    html = page(client, f"{ITEMS}{item.id}/payloads/")
    assert "The first 64.0\xa0KB of 97.7\xa0KB" in html
    assert len(html) < 90_000
    response = client.get(f"{ITEMS}{item.id}/payloads/request/")
    assert response.content == body
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert response.headers["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    line = [record for record in caplog.records if record.name == "audit"][-1]
    assert (line.getMessage(), vars(line)["user"]) == ("item request downloaded", "owner")
    assert client.get(f"{ITEMS}{item.id}/payloads/response/").status_code == 404
    assert client.get(f"{ITEMS}{item.id}/payloads/other/").status_code == 404


def test_items_are_found_by_their_own_id_and_by_their_batchs(world: SimpleNamespace) -> None:
    client, item = owner_client(), world.items[1]
    found = client.get(ITEMS, {"q": str(item.id)}).context["cl"].result_list
    assert [row.id for row in found] == [item.id]
    found = client.get(ITEMS, {"q": str(item.batch_id)}).context["cl"].result_list
    assert {row.idx for row in found} == {0, 1}


def test_the_list_of_items_reads_a_page_and_no_upstream_error(
    world: SimpleNamespace, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    submit(world, *[chat_body()] * 300)
    client = owner_client()
    with django_assert_max_num_queries(7) as captured:
        page(client, ITEMS)
    assert not any("upstream_error" in query["sql"] for query in captured.captured_queries)


def test_rows_are_counted_up_to_a_bound(
    world: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rows = BatchItem.objects.order_by("-id")
    with django_assert_num_queries(1) as captured:
        assert LargePaginator(rows, 100, whole_table=True).count == 5
    assert f"LIMIT {MAX_COUNTED_ROWS + 1}" in captured.captured_queries[0]["sql"]


def test_workers_say_whether_they_live_and_what_they_run(world: SimpleNamespace) -> None:
    BatchItem.objects.filter(batch=world.open_batch, idx=0).update(state="running", worker_id=world.worker.id)
    html = page(owner_client(), "/admin/batches/worker/")
    assert "here:4711" in html
    assert 'alt="True"' in html
    assert '<td class="field-running">1</td>' in html
