"""The web process needs at most four times the size of hostile bodies and responses, over real HTTP."""

from __future__ import annotations

import contextlib
import http.client
from typing import TYPE_CHECKING
from urllib.parse import quote

import psutil
import pytest

from batches.models import Batch
from bench.measurements import Memory
from tests.support.calls.collections import CHAT
from tests.support.rows.catalog import make_catalog
from tests.support.rows.item_outcomes import complete, discard, end
from tests.support.rows.submissions import submit
from tests.support.servers.web import web_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.web import Web

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.endurance]

FLOOR_BYTES = 8 << 20
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=b"
PART = b'--b\r\nContent-Disposition: form-data; name="username"%b\r\n\r\n%b\r\n--b--\r\n'


@pytest.fixture
def web(tmp_path: Path, transactional_db: None) -> Iterator[Web]:
    """A process of its own, on whose heap nothing large was freed before."""
    with web_process(tmp_path) as web:
        yield web


@pytest.fixture
def rows() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def growth_of(web: Web) -> Memory:
    memory = Memory(psutil.Process(web.process.pid).children()[0].pid)
    memory.begin()
    return memory


def assert_within(memory: Memory, size_bytes: int) -> None:
    growth = memory.growth_bytes()
    if growth is None:
        pytest.skip("the system does not report a process's peak")
    assert growth <= 4 * size_bytes + FLOOR_BYTES


def ended(rows: SimpleNamespace, answer: bytes = b"") -> Batch:
    """A Relay batch of one item that failed, or has this response."""
    batch = submit(rows)
    if answer:
        complete(batch, 0, answer)
    else:
        discard(batch, 0, error_code="timeout", error="x")
    end(batch)
    return batch


def test_a_create_with_millions_of_pairs_of_metadata(web: Web, rows: SimpleNamespace) -> None:
    pairs = b",".join(b'"%x":""' % number for number in range(2_800_000))
    body = b'{"shape":"openai","requests":[{"model":"echo-1"}],"metadata":{%b}}' % pairs
    memory = growth_of(web)
    reply = web.call("POST", "/v1/batches", headers=rows.headers, body=body)
    assert (reply.status, reply.json["error"]["param"]) == (400, "metadata")
    assert_within(memory, len(body))


@pytest.mark.parametrize("form", [b'"%x":1', b'"idx":[%d]', b'"custom_id":["%x"]'])
def test_a_retry_with_millions_of_members_or_entries(web: Web, rows: SimpleNamespace, form: bytes) -> None:
    batch = ended(rows)
    opening, _, closing = form.partition(b"[")
    element = closing[:-1] if closing else form
    elements = b",".join(element % number for number in range(8_000_000 // (len(element) + 5)))
    body = b"{%b[%b]}" % (opening, elements) if closing else b"{%b}" % elements
    memory = growth_of(web)
    reply = web.call("POST", f"/v1/batches/{batch.id}/retry", headers=rows.headers, body=body)
    assert reply.status == (400 if closing else 202)
    assert_within(memory, len(body))


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        (FORM, b"username=" + quote("😀").encode() * 2_500_000, 400),
        (FORM, b"username=" + "😀".encode() * 7_500_000, 400),
        (FORM, b"username=" + b"x" * 1_048_600, 400),
        (FORM, b"username=" + "😀".encode() * 260_000, 403),
        (PARTS, PART % (b"", b"x" * 30_000_000), 400),
        (PARTS, PART % (b'; filename="f"', b"x" * 30_000_000), 403),
    ],
    ids=["escaped", "raw", "just over", "within", "part", "file"],
)
def test_a_form_that_anybody_may_send_to_the_admins_login(
    web: Web, rows: SimpleNamespace, content_type: str, body: bytes, status: int
) -> None:
    memory = growth_of(web)
    headers = {"Content-Type": content_type, "Cookie": "csrftoken=" + "x" * 32}
    assert web.call("POST", "/admin/login/", headers=headers, body=body).status == status
    growth = memory.growth_bytes()
    assert growth is None or growth < 3 * FLOOR_BYTES


@pytest.mark.parametrize("path", ["results", "results?format=jsonl"])
def test_a_large_answer_that_is_hard_to_escape_is_given_back(
    web: Web, rows: SimpleNamespace, path: str
) -> None:
    answer = b'{"choices":"%b"}' % ("éa".encode() * 8_000_000)
    batch = ended(rows, answer)
    memory = growth_of(web)
    assert read_bytes(web, f"/v1/batches/{batch.id}/{path}", rows) > len(answer)
    assert_within(memory, len(answer))


def test_a_large_answer_is_given_back_as_a_line_of_the_collections(web: Web, rows: SimpleNamespace) -> None:
    answer = b'{"choices":"%b"}' % ("éa".encode() * 8_000_000)
    assert web.call("POST", CHAT.path, headers=rows.headers, body=CHAT.body()).status == 200
    batch = Batch.objects.get()
    complete(batch, 0, answer)
    end(batch)
    memory = growth_of(web)
    assert read_bytes(web, f"/v1/batches/batch_{batch.id.hex}/results", rows) > 2 * len(answer)
    assert_within(memory, len(answer))


def read_bytes(web: Web, path: str, rows: SimpleNamespace) -> int:
    """Read the response without keeping it, and return its size."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)) as connection:
        connection.request("GET", path, headers=rows.headers)
        response = connection.getresponse()
        assert response.status == 200
        size = 0
        while piece := response.read(1 << 20):
            size += len(piece)
        return size
