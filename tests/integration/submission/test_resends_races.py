"""Creates that are sent again while the first is in progress, was cut or was rolled back: with real sockets."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import pytest
from django.db import OperationalError, connection, transaction

from batches.models import Batch, KeylessCreate, Owner, PayloadStoreMark
from batches.submission import resends
from batches.submission.idempotency import ReplayedResponse
from batches.submission.owner_quota import lock_quota, quota_key
from batches.submission.resends import KeylessRequest, deduplicate, record_create
from relaybatch.db.connection import release_connection
from relaybatch.http.errors import Conflict, Unavailable
from tests.support.calls.collections import CHAT, MESSAGES
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_until
from tests.support.servers.web import web_process
from tests.support.upstream.upstream_responses import body as answer_of
from tests.support.upstream.upstream_responses import held as held_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.web import Reply, Web
    from tests.support.upstream.upstream import Answer, Request, Upstream

pytestmark = pytest.mark.django_db(transaction=True)

BODY = b'{"shape":"openai","requests":[' + chat_body("sent again") + b"]}"
# Who is in progress: with the lock of a send, whatever else it does.
OF_A_SEND = f"""
locktype = 'advisory' AND classid <> {quota_key(0) >> 32}
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
SENDING = f"SELECT pid FROM pg_locks WHERE granted AND {OF_A_SEND}"
IN_TRANSACTION = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL
    AND pid <> pg_backend_pid()
"""
# Who waits as a resend does, and who waits with the lock of its send.
RESEND = f"SELECT pid FROM pg_locks WHERE NOT granted AND {OF_A_SEND}"
FIRST_SEND = f"""
{SENDING} AND pid IN (SELECT pid FROM pg_locks WHERE NOT granted)
"""


@pytest.fixture
def rows() -> SimpleNamespace:
    rows = make_catalog("http://127.0.0.1:9")
    submit(rows)
    return rows


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def post(web: Web, rows: SimpleNamespace, count: int, *, path: str = CHAT.path, body: bytes = BODY) -> Reply:
    headers = rows.headers | {"x-stainless-retry-count": str(count)}
    return web.call("POST", path, headers=headers, body=body)


def cut_send(
    web: Web, rows: SimpleNamespace, count: int, *, path: str = CHAT.path, body: bytes = BODY
) -> None:
    """The client is gone once it has sent everything; returns when the batch is there."""
    before = Batch.objects.count()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    fields = "".join(f"{name}: {value}\r\n" for name, value in rows.headers.items())
    with web.connected() as client:
        client.sendall(f"{head}{fields}x-stainless-retry-count: {count}\r\n\r\n".encode() + body)
    wait_until(lambda: Batch.objects.count() == before + 1, web.log)


def waiting(kind: str) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(kind)
        return [pid for (pid,) in cursor.fetchall()]


def until_waiting(kind: str, web: Web) -> int:
    wait_until(lambda: bool(waiting(kind)), web.log)
    return waiting(kind)[0]


class HeldQuota:
    """The owner's quota, locked from a connection of its own: a submission stops there, within its transaction."""

    def __init__(self) -> None:
        self._locked, self._release = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._locked.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        self._release.set()
        self._thread.join()

    def _hold(self) -> None:
        with transaction.atomic():
            lock_quota(Owner.objects.get().id)
            self._locked.set()
            self._release.wait(30)
        connection.close()


@pytest.fixture
def held(rows: SimpleNamespace) -> Iterator[HeldQuota]:
    with HeldQuota() as owner:
        yield owner


@pytest.mark.parametrize(
    ("path", "body"), [(CHAT.path, BODY), (CHAT.path, CHAT.body()), (MESSAGES.path, MESSAGES.body())]
)
def test_a_create_whose_answer_was_cut_is_one_batch_with_one_answer(
    web: Web, rows: SimpleNamespace, path: str, body: bytes
) -> None:
    cut_send(web, rows, 0, path=path, body=body)
    answers = [post(web, rows, count, path=path, body=body) for count in (1, 2)]
    assert answers[0].status in (200, 202)
    assert answers[0].body == answers[1].body == bytes(KeylessCreate.objects.get().answer)
    assert Batch.objects.count() == 2


def test_of_two_alike_that_were_both_cut_each_has_a_batch(web: Web, rows: SimpleNamespace) -> None:
    """The first to come back has the newer one; the other may not have it too, and makes its own."""
    cut_send(web, rows, 0)
    cut_send(web, rows, 0)
    ids = {post(web, rows, 1).json["id"] for _ in range(2)}
    assert len(ids) == 2


def test_a_resend_waits_for_the_first_that_is_still_in_progress(
    web: Web, rows: SimpleNamespace, held: HeldQuota, threads: ThreadPoolExecutor
) -> None:
    first = threads.submit(post, web, rows, 0)
    until_waiting(FIRST_SEND, web)
    again = threads.submit(post, web, rows, 1)
    until_waiting(RESEND, web)
    held.release()
    assert (again.result(30).status, again.result().body) == (202, first.result(30).body)
    assert Batch.objects.count() == 2


def test_a_resend_waits_for_the_newer_of_two_and_gets_its_answer(
    web: Web, rows: SimpleNamespace, threads: ThreadPoolExecutor
) -> None:
    older = post(web, rows, 0)
    with HeldQuota():
        newer = threads.submit(post, web, rows, 0)
        until_waiting(FIRST_SEND, web)
        again = threads.submit(post, web, rows, 1)
        until_waiting(RESEND, web)
    assert again.result(30).body == newer.result(30).body
    assert newer.result().body != older.body


def test_a_resend_makes_the_batch_that_was_rolled_back_and_later_resends_get_it(
    web: Web, rows: SimpleNamespace, held: HeldQuota, threads: ThreadPoolExecutor
) -> None:
    first = threads.submit(post, web, rows, 0)
    inside = until_waiting(FIRST_SEND, web)
    again = threads.submit(post, web, rows, 1)
    until_waiting(RESEND, web)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [inside])
    assert first.result(30).status == 503
    held.release()
    assert again.result(30).status == 202
    assert post(web, rows, 2).body == again.result().body
    assert Batch.objects.count() == 2


def test_of_two_resends_of_the_same_count_at_once_one_gets_the_answer(
    web: Web, rows: SimpleNamespace, threads: ThreadPoolExecutor
) -> None:
    first = post(web, rows, 0)
    answers: list[Future[Reply]] = [threads.submit(post, web, rows, 1) for _ in range(4)]
    bodies = [answer.result(30).body for answer in answers]
    assert bodies.count(first.body) == 1
    assert len(set(bodies)) == 4


def sent(owner: Owner, count: int = 0, **values: Any) -> KeylessRequest:
    return KeylessRequest(owner_name=owner.name, digest=bytes(32), resend_count=count, **values)


def create(owner: Owner, send: KeylessRequest, *, failure: Exception | None = None) -> None:
    """With `failure`, the caller hears of it after the commit."""
    with deduplicate(send):
        with transaction.atomic():
            record_create(owner.id, send, status=202, body=b"the answer")
        if failure:
            raise failure


def test_first_sends_do_not_wait_for_one_another(rows: SimpleNamespace, threads: ThreadPoolExecutor) -> None:
    owner = Owner.objects.get()
    with deduplicate(sent(owner)):
        assert threads.submit(_create_elsewhere, owner).result(10) is None
    assert KeylessCreate.objects.filter(digest=bytes(32)).count() == 1


def _create_elsewhere(owner: Owner) -> None:
    try:
        create(owner, sent(owner))
    finally:
        connection.close()


def test_a_resend_waits_for_a_first_that_is_still_being_looked_at(
    web: Web, rows: SimpleNamespace, threads: ThreadPoolExecutor
) -> None:
    """From its arrival on: before anything is stored."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE batches_owner")
        first = threads.submit(post, web, rows, 0)
        until_waiting(SENDING, web)
        again = threads.submit(post, web, rows, 1)
        until_waiting(RESEND, web)
    assert (again.result(30).status, again.result().body) == (202, first.result(30).body)
    assert Batch.objects.count() == 2


def test_a_resend_of_what_takes_too_long_is_asked_to_come_back(
    web: Web, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, threads: ThreadPoolExecutor
) -> None:
    """And is no refusal: the one after it still gets the answer."""
    monkeypatch.setattr(resends, "LOCK_TIMEOUT_SECONDS", 0.1)
    owner = Owner.objects.get()
    with deduplicate(sent(owner)):
        refusal = threads.submit(_refusal_elsewhere, owner).result(10)
        with transaction.atomic():
            record_create(owner.id, sent(owner), status=202, body=b"the answer")
    assert (refusal.http_status, refusal.code) == (503, "unavailable")
    with pytest.raises(ReplayedResponse), deduplicate(sent(owner, 1)):
        pass


def _refusal_elsewhere(owner: Owner) -> Unavailable:
    try:
        with pytest.raises(Unavailable) as refused, deduplicate(sent(owner, 1)):
            pass
    finally:
        connection.close()
    return refused.value


def test_what_was_sent_leaves_no_lock(web: Web, rows: SimpleNamespace) -> None:
    for count, body in ((0, BODY), (1, BODY), (2, BODY), (0, b"{}"), (1, b"{}")):
        post(web, rows, count, body=body)
    assert waiting(SENDING) == []


def test_the_lock_of_a_send_stays_with_it_though_what_it_stores_releases_connections(
    rows: SimpleNamespace, threads: ThreadPoolExecutor
) -> None:
    owner = Owner.objects.get()
    with deduplicate(sent(owner)):
        release_connection()
        # Another thread would get the session, and with it the lock.
        assert threads.submit(_sessions_with_a_lock_of_ours).result(10) == []
    assert waiting(SENDING) == []


def _sessions_with_a_lock_of_ours() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"{SENDING} AND pid = pg_backend_pid()")
        found = [pid for (pid,) in cursor.fetchall()]
    connection.close()
    return found


def test_a_commit_whose_connection_dropped_is_no_rejection(rows: SimpleNamespace) -> None:
    owner = Owner.objects.get()
    with pytest.raises(OperationalError):
        create(owner, sent(owner), failure=OperationalError())
    with pytest.raises(ReplayedResponse), deduplicate(sent(owner, 1)):
        pass


def test_a_refusal_of_an_earlier_send_that_is_noted_late_hides_no_later_create(rows: SimpleNamespace) -> None:
    owner = Owner.objects.get()
    with pytest.raises(Conflict), deduplicate(sent(owner, arrived_monotonic=time.monotonic() - 1)):
        create(owner, sent(owner), failure=Conflict("no"))
    with pytest.raises(ReplayedResponse), deduplicate(sent(owner, 1)):
        pass


def test_a_resend_gets_the_answer_of_a_process_that_is_gone(rows: SimpleNamespace, tmp_path: Path) -> None:
    bodies = []
    for count in (0, 1):
        (tmp_path / str(count)).mkdir()
        with web_process(tmp_path / str(count)) as web:
            bodies.append(post(web, rows, count).body)
    assert bodies[0] == bodies[1]
    assert Batch.objects.count() == 2


class Bucket:
    """As much of S3 as a payload store needs. What is put waits for `gate`, but for the store's marker."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.waiting = False
        self._objects: dict[str, bytes] = {}

    def answer(self, request: Request) -> Answer:
        if request.method == "PUT":
            self._objects[request.path] = request.body
            stored = answer_of(b"", headers={"ETag": '"1"'})
            if "relaybatch-store" in request.path:
                return stored
            self.waiting = True
            return held_until(self.gate, stored)
        found = self._objects.get(request.path)
        headers = {"ETag": '"1"', "Last-Modified": "Tue, 01 Dec 2026 06:00:00 GMT"}
        return answer_of(b"", status=404) if found is None else answer_of(found, headers=headers)


def test_a_resend_waits_while_the_first_is_still_being_stored(
    rows: SimpleNamespace, upstream: Upstream, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """However slow the store is, and without a transaction that would be open so long."""
    bucket = Bucket()
    upstream.handler = bucket.answer
    variables = {
        "RELAY_BATCH_PAYLOAD_URL": "s3://bucket/prefix",
        "AWS_ENDPOINT": upstream.url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_REGION": "nowhere-1",
    }
    PayloadStoreMark.objects.all().delete()
    with web_process(tmp_path, **variables) as web:
        first = threads.submit(post, web, rows, 0)
        wait_until(lambda: bucket.waiting, web.log)
        again = threads.submit(post, web, rows, 1)
        until_waiting(RESEND, web)
        assert waiting(IN_TRANSACTION) == waiting(RESEND)
        bucket.gate.set()
        assert (first.result(30).status, first.result().body) == (202, again.result(30).body)
    assert Batch.objects.count() == 2
