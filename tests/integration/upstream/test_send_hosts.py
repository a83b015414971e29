"""What of a host goes upstream: its query, its headers and the way to authenticate; and what of it stays here."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from routing.gate import breakers
from routing.models import Binding, Host, HostHeader, HostKey
from routing.resolution import unusable_log
from routing.resolution.resolve import clear_cache, resolve_model
from routing.secrets.encryption import encrypt
from routing.upstream.send import send
from tests.support.calls.upstream_calls import call_of
from tests.support.rows.catalog import make_catalog
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries

    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db

PLANTED = "planted-header-secret"
OF_EVERY_CALL = {
    *("host", "content-type", "content-length", "accept", "accept-encoding", "idempotency-key", "user-agent")
}


@pytest.fixture
def catalog(upstream: Upstream) -> SimpleNamespace:
    return make_catalog(upstream.url)


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unusable_log, "_reported", {})


def change(catalog: SimpleNamespace, **fields: Any) -> None:
    Host.objects.filter(id=catalog.host.id).update(**fields)


def add(catalog: SimpleNamespace, name: str, **fields: Any) -> HostHeader:
    return HostHeader.objects.create(host=catalog.host, name=name, **fields)


def own_headers(upstream: Upstream) -> dict[str, str]:
    """Those of the last request that not every request has."""
    return {n: v for n, v in upstream.requests[-1].headers.items() if n not in OF_EVERY_CALL}


def failure_code(catalog: SimpleNamespace) -> str:
    clear_cache()
    failure = send(call_of(catalog)).failure
    return failure.code if failure else ""


@pytest.mark.parametrize(
    ("auth", "headers"),
    [
        ("", {"authorization": "Bearer upstream-secret"}),
        ("bearer", {"authorization": "Bearer upstream-secret"}),
        ("x-api-key", {"x-api-key": "upstream-secret"}),
        ("api-key", {"api-key": "upstream-secret"}),
        ("X-Subscription", {"x-subscription": "upstream-secret"}),
        ("none", {}),
    ],
)
def test_the_host_key_is_sent_as_the_host_says(
    upstream: Upstream, catalog: SimpleNamespace, auth: str, headers: dict[str, str]
) -> None:
    change(catalog, auth=auth)
    send(call_of(catalog))
    assert own_headers(upstream) == headers


def test_messages_may_be_sent_a_bearer(upstream: Upstream, catalog: SimpleNamespace) -> None:
    change(catalog, auth="bearer")
    send(call_of(catalog, adapter="anthropic"))
    assert own_headers(upstream) == {
        "authorization": "Bearer upstream-secret",
        "anthropic-version": "2023-06-01",
    }


def test_the_hosts_query_stands_behind_the_path(upstream: Upstream, catalog: SimpleNamespace) -> None:
    change(catalog, query={"api-version": "2024-10-21", "a&b": "c d"})
    send(call_of(catalog))
    assert upstream.requests[0].path == "/v1/chat/completions?a%26b=c%20d&api-version=2024-10-21"


def test_headers_of_all_sources_go_with_each_call(
    upstream: Upstream, catalog: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_text(" from a file\n")
    monkeypatch.setenv("SOME_VARIABLE", "from the environment\n")
    add(catalog, "X-Team", text="search")
    add(catalog, "X-Env", env_name="SOME_VARIABLE")
    add(catalog, "X-File", file_path=str(file))
    add(catalog, "X-Sealed", secret_encrypted=encrypt(b"sealed"))
    add(catalog, "user-agent", text="ours/1.0")
    send(call_of(catalog))
    assert own_headers(upstream) == {
        "authorization": "Bearer upstream-secret",
        "x-team": "search",
        "x-env": "from the environment",
        "x-file": "from a file",
        "x-sealed": "sealed",
    }
    assert upstream.requests[0].headers["user-agent"] == "ours/1.0"


def test_the_callers_anthropic_headers_win_over_the_hosts(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    add(catalog, "Anthropic-Version", text="of-the-host")
    add(catalog, "Anthropic-Beta", text="of-the-host")
    send(call_of(catalog, adapter="anthropic"))
    send(call_of(catalog, adapter="anthropic", headers={"anthropic-version": "callers"}))
    send(call_of(catalog, headers={"anthropic-version": "callers"}))

    versions = [request.headers.get("anthropic-version") for request in upstream.requests]
    assert versions == ["of-the-host", "callers", "of-the-host"]
    assert [request.headers["anthropic-beta"] for request in upstream.requests] == ["of-the-host"] * 3


@pytest.mark.parametrize(
    ("name", "auth"),
    [
        *(("Host", ""), ("content-length", ""), ("Connection", ""), ("Content-Type", ""), ("expect", "")),
        *(("Authorization", ""), ("authorization", "bearer"), ("Api-Key", "api-key"), ("a b", "")),
        ("X-Team", "Host"),
    ],
)
def test_what_came_into_the_rows_by_other_ways_is_not_sent(
    upstream: Upstream, catalog: SimpleNamespace, name: str, auth: str
) -> None:
    change(catalog, auth=auth)
    add(catalog, name, text="x")
    assert failure_code(catalog) == "upstream_unreachable"
    assert upstream.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "a\r\nx: y"},
        {"text": " a"},
        {"secret_encrypted": encrypt(b"a\nb")},
        {"secret_encrypted": encrypt(b"\xff")},
        {"secret_encrypted": b"nonsense"},
        {"env_name": "NOT_SET_HERE"},
        {"env_name": "RELAY_MASTER_KEY"},
        {"file_path": "/nowhere/at/all"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_header_whose_value_cannot_be_had_or_sent_stops_the_host(
    upstream: Upstream, catalog: SimpleNamespace, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    add(catalog, "X-Team", **fields)
    with caplog.at_level(logging.WARNING):
        assert failure_code(catalog) == failure_code(catalog) == "upstream_unreachable"
    assert upstream.requests == []
    (record,) = [record for record in caplog.records if record.name == "routing.resolution.unusable_log"]
    reason = record.__dict__["reason"]
    assert record.getMessage() == "catalog row unusable"
    assert reason.startswith(f"host {catalog.host.name}: ")
    assert "X-Team" in reason
    assert "x: y" not in reason


@pytest.mark.parametrize(
    "said",
    [
        f"not {PLANTED}!",
        f"no planted-{'*' * 8}-secret",
        f"token={PLANTED};",
        "bad pw-of-basic",
        "no planted...",
    ],
)
def test_a_secret_header_that_an_upstream_quotes_is_masked(
    upstream: Upstream, catalog: SimpleNamespace, said: str
) -> None:
    add(catalog, "X-Sealed", secret_encrypted=encrypt(f"Token {PLANTED}".encode()))
    add(catalog, "X-Basic", secret_encrypted=encrypt(b"Basic pw-of-basic"))
    add(catalog, "X-Team", text="a-team-of-ours")
    upstream.script(answers.body(f"{said} a-team-of-ours".encode(), status=400))
    failure = send(call_of(catalog)).failure
    assert failure is not None
    assert b"***" in failure.upstream_error
    assert b"a-team-of-ours" in failure.upstream_error
    for secret in (b"header-secret", b"pw-of-basic"):
        assert secret not in failure.upstream_error


def test_no_repr_holds_a_header_of_the_host(catalog: SimpleNamespace) -> None:
    add(catalog, "X-Sealed", secret_encrypted=encrypt(PLANTED.encode()))
    found = resolve_model(policy_id=catalog.policy.id, model_name="echo-1", adapter="openai")
    assert found.route.bindings[0].host_call.secrets == (PLANTED,)
    assert PLANTED not in repr(found) + repr(HostHeader.objects.get())


def test_a_file_is_read_again_when_the_rows_are(
    upstream: Upstream, catalog: SimpleNamespace, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("sk-before\n")
    HostKey.objects.update(secret_encrypted=None, file_path=str(file))
    clear_cache()
    send(call_of(catalog))
    file.write_text("sk-after\n")
    clear_cache()
    send(call_of(catalog))
    assert [request.credential for request in upstream.requests] == ["sk-before", "sk-after"]


@pytest.mark.parametrize("content", [None, "", "planted two words", "planted\nlines", "planted" * 2000])
def test_a_key_whose_file_is_unusable_is_skipped_and_logged(
    catalog: SimpleNamespace, tmp_path: Path, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content)
    HostKey.objects.update(secret_encrypted=None, file_path=str(file))
    with caplog.at_level(logging.WARNING):
        assert failure_code(catalog) == failure_code(catalog) == "no_keys"
    (record,) = [record for record in caplog.records if record.name == "routing.resolution.unusable_log"]
    assert f"host key {catalog.host_keys[0].name}" in record.__dict__["reason"]
    assert "planted" not in record.__dict__["reason"]


def test_a_row_that_was_usable_again_is_logged_again(
    catalog: SimpleNamespace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key"
    HostKey.objects.update(secret_encrypted=None, file_path=str(file))
    codes = []
    for there in (False, True, False):
        file.write_text("sk-1") if there else file.unlink(missing_ok=True)
        codes.append(failure_code(catalog))
    assert codes == ["no_keys", "", "no_keys"]
    assert len([record for record in caplog.records if record.name == "routing.resolution.unusable_log"]) == 2


def test_a_key_without_a_value_calls_a_host_that_is_sent_none(
    upstream: Upstream, catalog: SimpleNamespace
) -> None:
    HostKey.objects.update(secret_encrypted=None)
    assert failure_code(catalog) == "no_keys"

    change(catalog, auth="none")
    assert failure_code(catalog) == ""
    assert own_headers(upstream) == {}


@pytest.mark.parametrize("sealed", [None, encrypt(b"a word that nobody is sent")], ids=["none", "unused"])
def test_hosts_that_are_sent_no_key_never_share_a_breaker(
    upstream: Upstream, catalog: SimpleNamespace, sealed: bytes | None
) -> None:
    other = Host.objects.create(name="other", base_url=upstream.url, auth="none")
    HostKey.objects.create(name="other", host=other, secret_encrypted=sealed)
    HostKey.objects.update(secret_encrypted=sealed)
    change(catalog, auth="none")
    upstream.script(answers.status(500))
    assert failure_code(catalog) == "upstream_status"

    keys = [HostKey.objects.get(name=name) for name in (catalog.host_keys[0].name, "other")]
    assert [found.state for found in breakers.breaker_states(keys)] == ["open", "closed"]
    breakers.reset_breaker(keys[0])
    assert [found.state for found in breakers.breaker_states(keys)] == ["closed", "closed"]


def test_the_headers_of_hosts_cost_one_query_a_load_and_none_a_call(
    catalog: SimpleNamespace, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        add(catalog, f"X-{number}", text="x")
    Binding.objects.create(model=catalog.models["openai"], host=catalog.host, adapter="openai", position=2)
    clear_cache()
    with django_assert_num_queries(6):
        send(call_of(catalog))
    with django_assert_num_queries(0):
        send(call_of(catalog))
