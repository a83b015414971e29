"""Retrieve, list, cancel, delete and retry in both collections of `{custom_id, params}`."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models.functions import Now

from batches.completion.expire import expire_batch
from batches.models import Batch, BatchItem
from tests.support.calls.collections import CHAT, COLLECTIONS, MESSAGES
from tests.support.rows.catalog import make_caller, make_catalog
from tests.support.rows.item_outcomes import complete, discard, end
from tests.support.rows.submissions import submit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import DjangoAssertNumQueries, Settings

    from tests.support.calls.collections import Collection

pytestmark = pytest.mark.django_db
BOTH = pytest.mark.parametrize("of", COLLECTIONS, ids=lambda one: one.name)


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def public_id(of: Collection, batch: Batch) -> str:
    return {"chat": "batch_", "messages": "msgbatch_"}[of.name] + batch.id.hex


def path(of: Collection, batch: Batch, rest: str = "") -> str:
    return f"{of.path}/{public_id(of, batch)}{rest}"


def get(client: Client, rows: SimpleNamespace, where: str, status: int = 200) -> dict[str, Any]:
    response = client.get(where, headers=rows.headers)
    assert response.status_code == status
    value: dict[str, Any] = json.loads(response.content)
    return value


def post(client: Client, rows: SimpleNamespace, where: str, status: int = 200) -> dict[str, Any]:
    response = client.generic("POST", where, headers=rows.headers)
    assert response.status_code == status
    value: dict[str, Any] = json.loads(response.content)
    return value


def ended(client: Client, rows: SimpleNamespace, of: Collection) -> Batch:
    batch = of.create(client, rows, "good", "bad")
    complete(batch, 0, b"{}")
    discard(batch, 1, error_code="timeout", error="timed out after 300 s")
    end(batch)
    return batch


@BOTH
def test_a_create_and_a_retrieve_say_the_same(client: Client, rows: SimpleNamespace, of: Collection) -> None:
    response = client.post(of.path, of.body(), content_type="application/json", headers=rows.headers)
    created = json.loads(response.content)
    assert get(client, rows, f"{of.path}/{created['id']}") == created
    assert created["processing_status"] == "in_progress"
    assert created["results_url"] is None


@BOTH
def test_counts_of_a_running_batch(client: Client, rows: SimpleNamespace, of: Collection) -> None:
    """Anthropic's stay in processing until the end, OpenAI's are live."""
    batch = of.create(client, rows, "a", "b", "c")
    complete(batch, 0, b"{}")
    counts = get(client, rows, path(of, batch))["request_counts"]
    if of is MESSAGES:
        assert counts == {"processing": 3, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
    else:
        assert (counts["total"], counts["completed"], counts["processing"]) == (3, 1, 2)


@BOTH
@pytest.mark.parametrize(
    ("public_url", "host", "origin"),
    [
        ("", "localhost:8080", "http://localhost:8080"),
        ("https://batches.example/relay", "elsewhere.test", "https://batches.example/relay"),
    ],
)
def test_an_ended_batch_links_to_its_results(
    client: Client,
    rows: SimpleNamespace,
    settings: Settings,
    of: Collection,
    public_url: str,
    host: str,
    origin: str,
) -> None:
    batch = ended(client, rows, of)
    settings.PUBLIC_URL = public_url
    response = client.get(path(of, batch), headers=rows.headers | {"Host": host})
    found = json.loads(response.content)
    assert found["processing_status"] == "ended"
    assert found["results_url"] == f"{origin}{path(of, batch, '/results')}"


@BOTH
def test_no_link_is_made_from_a_host_that_is_not_ours(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = ended(client, rows, of)
    response = client.get(path(of, batch), headers=rows.headers | {"Host": "evil.test"})
    assert response.status_code == 400
    assert b"evil" not in response.content


@BOTH
def test_a_batch_is_seen_in_its_own_collection_alone(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = of.create(client, rows)
    other = CHAT if of is MESSAGES else MESSAGES
    wrong = [
        f"{other.path}/{public_id(of, batch)}",
        f"{other.path}/{public_id(other, batch)}",
        f"{of.path}/{public_id(other, batch)}",
        f"{of.path}/{batch.id}",
        f"{of.path}/{batch.id.hex}",
        f"{of.path}/{public_id(of, batch).upper()}",
    ]
    for where in wrong:
        assert client.get(where, headers=rows.headers).status_code == 404
        assert client.post(f"{where}/cancel", headers=rows.headers).status_code == 404
    assert get(client, rows, path(of, batch))["id"] == public_id(of, batch)


@BOTH
def test_strangers_batches_are_a_404_on_every_route(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    where = path(of, ended(client, rows, of))
    stranger = make_caller(rows)
    for method, rest in [
        ("GET", ""),
        ("GET", "/results"),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("DELETE", ""),
    ]:
        response = client.generic(method, where + rest, headers=stranger.headers)
        assert (response.status_code, response["x-should-retry"]) == (404, "false")
    assert get(client, stranger, of.path)["data"] == []


class TestMessagesList:
    def page(self, client: Client, rows: SimpleNamespace, query: str) -> tuple[list[str], bool]:
        found = get(client, rows, f"{MESSAGES.path}{query}")
        assert list(found) == ["data", "has_more", "first_id", "last_id"]
        ids = [batch["id"] for batch in found["data"]]
        assert (found["first_id"], found["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))
        return ids, found["has_more"]

    def test_pages_go_both_ways_and_are_newest_first(self, client: Client, rows: SimpleNamespace) -> None:
        newest_first = [public_id(MESSAGES, MESSAGES.create(client, rows)) for _ in range(5)][::-1]
        CHAT.create(client, rows)
        submit(rows)
        e, d, c, b, a = newest_first
        assert self.page(client, rows, "") == (newest_first, False)
        assert self.page(client, rows, "?limit=2") == ([e, d], True)
        assert self.page(client, rows, f"?limit=2&after_id={d}") == ([c, b], True)
        assert self.page(client, rows, f"?limit=2&after_id={b}") == ([a], False)
        assert self.page(client, rows, f"?limit=1&after_id={b}&beta=true") == ([a], False)
        assert self.page(client, rows, f"?limit=2&after_id={a}") == ([], False)
        assert self.page(client, rows, f"?limit=2&before_id={a}") == ([c, b], True)
        assert self.page(client, rows, f"?limit=2&before_id={c}") == ([e, d], False)
        assert self.page(client, rows, f"?limit=2&before_id={d}") == ([e], False)
        assert self.page(client, rows, f"?limit=2&before_id={e}") == ([], False)
        assert self.page(client, rows, f"?limit=1000&before_id={a}") == ([e, d, c, b], False)

    def test_twenty_are_a_page(self, client: Client, rows: SimpleNamespace) -> None:
        for _ in range(21):
            MESSAGES.create(client, rows)
        ids, has_more = self.page(client, rows, "")
        assert (len(ids), has_more) == (20, True)

    def test_who_deletes_while_paging_goes_on_behind_the_deleted_one(
        self, client: Client, rows: SimpleNamespace
    ) -> None:
        older, newer = ended(client, rows, MESSAGES), ended(client, rows, MESSAGES)
        assert client.delete(path(MESSAGES, newer), headers=rows.headers).status_code == 200
        query = f"?after_id={public_id(MESSAGES, newer)}"
        assert self.page(client, rows, query) == ([public_id(MESSAGES, older)], False)

    @pytest.mark.parametrize(
        "query",
        [
            "?limit=0",
            "?limit=1001",
            "?limit=x",
            "?limit=1&limit=2",
            "?after_id=",
            "?after_id=x",
            "?before_id=msgbatch_x",
            f"?after_id=msgbatch_{uuid.UUID(int=7).hex}",
        ],
    )
    def test_a_bad_query_is_a_400(self, client: Client, rows: SimpleNamespace, query: str) -> None:
        MESSAGES.create(client, rows)
        response = client.get(f"{MESSAGES.path}{query}", headers=rows.headers)
        assert response.status_code == 400
        assert MESSAGES.error(response)["type"] == "invalid_request_error"

    def test_others_batches_are_no_cursor(self, client: Client, rows: SimpleNamespace) -> None:
        theirs = public_id(MESSAGES, MESSAGES.create(client, make_caller(rows)))
        get(client, rows, f"{MESSAGES.path}?after_id={theirs}", status=400)
        get(client, rows, f"{MESSAGES.path}?after_id=batch_{theirs.removeprefix('msgbatch_')}", status=400)

    def test_both_directions_at_once_are_a_400(self, client: Client, rows: SimpleNamespace) -> None:
        one = public_id(MESSAGES, MESSAGES.create(client, rows))
        get(client, rows, f"{MESSAGES.path}?after_id={one}&before_id={one}", status=400)

    def test_a_page_takes_three_queries(
        self, client: Client, rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(3):
            ended(client, rows, MESSAGES)
        with django_assert_num_queries(3):  # the credential, the owner, the page
            get(client, rows, MESSAGES.path)


class TestChatList:
    def page(self, client: Client, rows: SimpleNamespace, query: str) -> tuple[list[str], bool]:
        found = get(client, rows, f"{CHAT.path}{query}")
        assert list(found) == ["object", "data", "first_id", "last_id", "has_more"]
        assert found["object"] == "list"
        ids = [batch["id"] for batch in found["data"]]
        assert (found["first_id"], found["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))
        return ids, found["has_more"]

    def test_pages_are_openais_and_leave_relays_out(self, client: Client, rows: SimpleNamespace) -> None:
        newest_first = [public_id(CHAT, CHAT.create(client, rows)) for _ in range(3)][::-1]
        MESSAGES.create(client, rows)
        submit(rows)
        c, b, a = newest_first
        assert self.page(client, rows, "") == (newest_first, False)
        assert self.page(client, rows, "?dialect=chat") == (newest_first, False)
        assert self.page(client, rows, "?limit=2") == ([c, b], True)
        assert self.page(client, rows, f"?limit=2&after={b}&x=y") == ([a], False)
        assert self.page(client, rows, f"?after={a}") == ([], False)
        assert self.page(client, rows, f"?after_id={b}") == ([a], False)
        assert self.page(client, rows, f"?limit=1&before_id={a}") == ([b], True)
        get(client, rows, f"{CHAT.path}?after={a}&before_id={a}", status=400)
        get(client, rows, f"{CHAT.path}?after={a}&after_id={a}", status=400)
        assert len(get(client, rows, f"{CHAT.path}?dialect=relay")["batches"]) == 1

    def test_a_page_takes_the_same_queries_for_any_number(
        self, client: Client, rows: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(3):
            CHAT.create(client, rows)
        ended(client, rows, CHAT)
        # Credential, owner, batches, counts of those that run, usage of those that ended.
        with django_assert_num_queries(5):
            assert len(get(client, rows, CHAT.path)["data"]) == 4
        running = CHAT.create(client, rows)
        with django_assert_num_queries(3):  # credential, batch, counts
            get(client, rows, path(CHAT, running))


@BOTH
def test_a_cancel_ends_what_waits_and_a_second_one_changes_nothing(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = of.create(client, rows, "a", "b")
    complete(batch, 0, b"{}")
    cancelled = post(client, rows, path(of, batch, "/cancel"))
    assert cancelled["processing_status"] == "ended"
    assert cancelled["request_counts"]["succeeded"] == 1
    assert cancelled["request_counts"]["canceled"] == 1
    assert cancelled["results_url"].endswith("/results")
    assert cancelled.get("status", "cancelled") == "cancelled"
    assert post(client, rows, path(of, batch, "/cancel")) == cancelled
    assert get(client, rows, path(of, batch)) == cancelled


@BOTH
def test_a_cancel_is_canceling_while_an_item_runs(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = of.create(client, rows, "a", "b")
    BatchItem.objects.filter(batch=batch, idx=0).update(state="running", worker_id=uuid.uuid4())
    cancelled = post(client, rows, path(of, batch, "/cancel/"))
    assert cancelled["processing_status"] == "canceling"
    assert cancelled["results_url"] is None
    if of is MESSAGES:
        assert cancelled["cancel_initiated_at"]
        assert cancelled["request_counts"]["processing"] == 2
    else:
        assert cancelled["status"] == "cancelling"
        assert cancelled["cancelling_at"]


@BOTH
def test_a_finished_batch_stays_as_it_was_when_it_is_cancelled(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = ended(client, rows, of)
    before = get(client, rows, path(of, batch))
    assert post(client, rows, path(of, batch, "/cancel")) == before
    assert before.get("status", "completed") == "completed"
    assert before.get("cancel_initiated_at") is None


@BOTH
def test_what_did_not_start_in_a_day_expires_and_the_rest_stays(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = of.create(client, rows, "a", "b")
    complete(batch, 0, b'{"x":1}')
    expire_batch(batch.id)
    found = get(client, rows, path(of, batch))
    assert found["processing_status"] == "ended"
    assert found.get("status", "expired") == "expired"
    counts = found["request_counts"]
    assert (counts["succeeded"], counts["expired"]) == (1, 1)
    lines = client.get(path(of, batch, "/results"), headers=rows.headers).getvalue().splitlines()
    assert [json.loads(line)["result"]["type"] for line in lines] == ["succeeded", "expired"]


@BOTH
def test_a_batch_is_deleted_once_it_has_ended(client: Client, rows: SimpleNamespace, of: Collection) -> None:
    batch = of.create(client, rows)
    early = client.delete(path(of, batch), headers=rows.headers)
    assert (early.status_code, early["x-should-retry"]) == (409, "false")
    assert of.error(early)["type"] == {"messages": "conflict_error", "chat": "invalid_request_error"}[of.name]
    complete(batch, 0, b"{}")
    end(batch)
    deleted = client.delete(path(of, batch), headers=rows.headers)
    by_name: dict[str, dict[str, Any]] = {
        "messages": {"type": "message_batch_deleted"},
        "chat": {"object": "batch", "deleted": True},
    }
    message = by_name[of.name]
    assert (deleted.status_code, json.loads(deleted.content)) == (
        200,
        {"id": public_id(of, batch), **message},
    )
    get(client, rows, path(of, batch), status=404)
    assert get(client, rows, of.path)["data"] == []


def retried(batch: Batch) -> Sequence[tuple[str | None, int]]:
    return list(BatchItem.objects.of(batch).values_list("custom_id", "request_length"))


@BOTH
def test_a_retry_is_a_new_batch_of_the_failed_items(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = ended(client, rows, of)
    answer = post(client, rows, path(of, batch, "/retry"))
    new = Batch.objects.newest_first()[0]
    assert answer["id"] == public_id(of, new) != public_id(of, batch)
    assert get(client, rows, path(of, new)) == answer
    assert retried(new) == [("bad", len(json.dumps(of.params())))]
    assert (new.max_attempts, new.on_rate_limit) == (3, "wait")
    early = client.generic("POST", path(of, new, "/retry"), headers=rows.headers)
    assert (early.status_code, early["x-should-retry"]) == (409, "false")
    assert of.error(early)


@BOTH
def test_a_deleted_batch_is_gone_on_every_route(
    client: Client, rows: SimpleNamespace, of: Collection
) -> None:
    batch = ended(client, rows, of)
    Batch.objects.filter(id=batch.id).update(deleted_at=Now())
    for method, rest in [
        ("GET", ""),
        ("GET", "/results"),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("DELETE", ""),
    ]:
        assert client.generic(method, path(of, batch, rest), headers=rows.headers).status_code == 404
