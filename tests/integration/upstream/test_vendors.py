"""Each entry of docs/vendors.md, applied as it stands there and called at a scripted upstream."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from routing.catalog.apply import apply_catalog
from routing.models import HostKey, Policy, PolicyHostKey
from routing.upstream.send import send
from tests.support.calls.upstream_calls import BODIES, call_of
from tests.support.rows.catalog import make_caller
from tests.support.upstream.vendors import CALLS, KEY, KEY_HEADERS, ExpectedRequest, at, entries, variables

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db

OF_EVERY_CALL = frozenset(
    {"host", "content-type", "content-length", "accept", "accept-encoding", "idempotency-key", "user-agent"}
)


def caller_of_all_keys() -> SimpleNamespace:
    policy = Policy.objects.create(name="vendors")
    PolicyHostKey.objects.bulk_create(
        PolicyHostKey(policy=policy, host_key=key) for key in HostKey.objects.all()
    )
    return make_caller(SimpleNamespace(policy=policy))


@pytest.mark.parametrize("expected", CALLS, ids=lambda expected: expected.model)
def test_a_vendor_is_asked_as_it_documents(
    upstream: Upstream, expected: ExpectedRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = entries()[expected.vendor]
    for name in variables(entry):
        monkeypatch.setenv(name, KEY)
    file = tmp_path / "catalog.yaml"
    file.write_text(at(entry, upstream.url))
    apply_catalog(file)
    body = json.dumps(json.loads(BODIES[expected.adapter]) | {"model": expected.model}).encode()

    outcome = send(call_of(caller_of_all_keys(), adapter=expected.adapter, body=body))

    assert outcome.failure is None
    (request,) = upstream.requests
    assert (request.method, request.path) == ("POST", expected.path)
    assert request.json()["model"] == expected.upstream_name
    assert {name: request.headers[name] for name in KEY_HEADERS & request.headers.keys()} == expected.key
    assert request.headers.keys() - OF_EVERY_CALL == expected.key.keys() | expected.headers.keys()
    assert expected.headers.items() <= request.headers.items()


def test_the_page_and_the_table_name_the_same_vendors() -> None:
    assert list(entries()) == list(dict.fromkeys(expected.vendor for expected in CALLS))


def test_the_whole_page_is_one_catalog(tmp_path: Path) -> None:
    """No entry takes a name of another: an operator may copy them all."""
    for number, entry in enumerate(entries().values()):
        file = tmp_path / f"{number}.yaml"
        file.write_text(entry)
        assert all(change.action == "create" for change in apply_catalog(file))
