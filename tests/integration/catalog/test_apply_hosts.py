"""`manage.py apply` and hosts: base URL, query, headers and `auth`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from routing.models import Binding, Host, HostHeader
from routing.secrets.encryption import decrypt
from tests.support.calls.catalog_files import apply, file, problems

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

__all__ = ["file"]
pytestmark = pytest.mark.django_db

PLACE = "which cannot stand for {model}"


def catalog(base_path: str, name: str, upstream_name: str = "") -> str:
    own = f", upstream_name: '{upstream_name}'" if upstream_name else ""
    return (
        "providers: [{name: p}]\n"
        f"hosts: [{{name: h, base_url: 'http://127.0.0.1:9{base_path}'}}]\n"
        "models:\n"
        f"  - name: '{name}'\n"
        "    provider: p\n"
        f"    bindings:\n    - {{host: h, adapter: openai{own}}}\n"
    )


@pytest.mark.parametrize("names", [("..",), (".",), ("m", ".."), ("m", ".")])
def test_a_step_along_the_path_cannot_stand_for_the_model(file: Path, names: tuple[str, ...]) -> None:
    (only,) = problems(file, catalog("/a/{model}", *names))
    assert only.startswith(f"line 7: models[0].bindings[0]: model {names[0]} on host h: the upstream's name")
    assert only.endswith(PLACE)


@pytest.mark.parametrize("names", [("..", "m"), ("...",), ("a/..",)])
def test_other_names_can(file: Path, names: tuple[str, ...]) -> None:
    assert apply(file, catalog("/a/{model}", *names))[-1] == f"create model {names[0]}"


def test_a_base_url_without_the_place_takes_any_name(file: Path) -> None:
    assert apply(file, catalog("/a", "..")) == ["create provider p", "create host h", "create model .."]


def test_a_host_cannot_change_under_a_binding_that_does_not_fit(file: Path) -> None:
    apply(file, catalog("/a", ".."))
    host = "hosts: [{name: h, base_url: 'http://127.0.0.1:9/{model}'}]\n"
    (only,) = problems(file, host)
    assert (
        only == f"line 1: hosts[0]: model .. on host h: the upstream's name of the model is . or .., {PLACE}"
    )
    assert Host.objects.get().base_url == "http://127.0.0.1:9/a"
    assert apply(file, host, prune=True)


def test_a_binding_cannot_come_to_a_host_that_the_file_leaves_out(file: Path) -> None:
    apply(file, catalog("/{model}", "m"))
    (only,) = problems(
        file, "models: [{name: m, provider: p, bindings: [{host: h, adapter: openai, upstream_name: ..}]}]"
    )
    assert only.startswith("line 1: models[0].bindings[0]: model m on host h: ")
    assert not Binding.objects.exclude(upstream_name="").exists()


def test_both_can_change_at_once(file: Path) -> None:
    apply(file, catalog("/{model}", "m"))
    assert apply(file, catalog("/a", "m", "..")) == ["update host h: base_url", "update model m: bindings"]
    assert Binding.objects.get().upstream_name == ".."


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://h/a/../b", "expected a path without the segments . and .."),
        ("http://h/%2e%2e", "expected a path without the segments . and .."),
        ("http://{model}/", "expected {model} in the path alone"),
        ("http://h/{deployment}", "expected no braces in the path but those of {model}"),
        ("http://h/%", "expected two hexadecimal digits behind each % in the path"),
    ],
)
def test_a_base_url_that_must_not_be_sent_is_named(file: Path, url: str, message: str) -> None:
    assert problems(file, f"hosts: [{{name: h, base_url: '{url}'}}]") == [
        f"line 1: hosts[0].base_url: {message}"
    ]


PLANTED = "planted-secret"
HOST = """\
hosts:
- name: h
  base_url: https://example.com/openai/deployments/{model}
  query: {api-version: "2024-10-21", x: "a b"}
  auth: api-key
  stream_usage: false
  headers:
    X-Team: search
    X-Env: {value_from: {env: SOME_VARIABLE}}
    X-File: {value_from: {file: /run/secrets/x}}
    X-Sealed: {value: planted-secret}
    X-Access-Token: planted-secret
"""


def secrets() -> dict[str, str]:
    sealed = HostHeader.objects.exclude(secret_encrypted=None)
    return {row.name: decrypt(bytes(row.secret_encrypted or b"")).decode() for row in sealed}


def test_a_host_takes_query_headers_auth_and_stream_usage(file: Path) -> None:
    assert apply(file, HOST) == ["create host h"]
    host = Host.objects.get()
    assert host.query == {"api-version": "2024-10-21", "x": "a b"}
    assert (host.auth, host.stream_usage) == ("api-key", False)
    assert set(HostHeader.objects.values_list("name", "text", "env_name", "file_path")) == {
        ("X-Team", "search", "", ""),
        ("X-Env", "", "SOME_VARIABLE", ""),
        ("X-File", "", "", "/run/secrets/x"),
        ("X-Sealed", "", "", ""),
        ("X-Access-Token", "", "", ""),
    }
    assert secrets() == {"X-Sealed": PLANTED, "X-Access-Token": PLANTED}
    assert apply(file, HOST) == []


def test_what_is_left_out_has_its_default(file: Path) -> None:
    apply(file, HOST)
    plain = "hosts: [{name: h, base_url: 'https://example.com'}]"
    assert apply(file, plain) == ["update host h: base_url, query, headers, auth, stream_usage"]
    host = Host.objects.get()
    assert (host.query, host.auth, host.stream_usage) == ({}, "", True)
    assert not HostHeader.objects.exists()


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ("search", "another", "headers"),
        ("{value: planted-secret}", "{value: another-secret}", "headers"),
        ("X-Access-Token: planted", "X-Access-Token: another", "headers"),
        ("X-Sealed: {value: planted-secret}", "X-Sealed: planted-secret", "headers"),
        ("SOME_VARIABLE", "ANOTHER_VARIABLE", "headers"),
        ("/run/secrets/x", "/run/secrets/y", "headers"),
        ("    X-Team: search\n", "", "headers"),
        ("X-Team", "x-team", "headers"),
        ("2024-10-21", "preview", "query"),
        ("auth: api-key", "auth: {header: X-Key}", "auth"),
        ("auth: api-key", "auth: none", "auth"),
        ("stream_usage: false", "stream_usage: true", "stream_usage"),
    ],
)
def test_a_change_is_reported_by_its_field_and_no_value(file: Path, old: str, new: str, fields: str) -> None:
    apply(file, HOST)
    assert old in HOST
    assert apply(file, HOST.replace(old, new)) == [f"update host h: {fields}"]
    assert apply(file, HOST.replace(old, new)) == []


def test_a_secret_header_is_written_again_only_when_it_differs(file: Path) -> None:
    apply(file, HOST)
    before = {row.name: bytes(row.secret_encrypted or b"") for row in HostHeader.objects.all()}
    apply(file, HOST)
    assert {row.name: bytes(row.secret_encrypted or b"") for row in HostHeader.objects.all()} == before


def test_a_secret_header_that_can_no_longer_be_read_is_written_anew(file: Path) -> None:
    apply(file, HOST)
    HostHeader.objects.filter(name="X-Sealed").update(secret_encrypted=b"nonsense")
    assert apply(file, HOST) == ["update host h: headers"]
    assert secrets()["X-Sealed"] == PLANTED


def test_a_secret_header_cannot_be_stored_without_a_master_key(file: Path, settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = ""
    assert problems(file, HOST) == ["RELAY_MASTER_KEY is not set: expected 32 random bytes in base64"]
    assert not Host.objects.exists()


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ("{Host: planted}", "headers[0]: expected another header: this one is set for each request"),
        ("{a: b, content-length: planted}", "headers[1]: expected another header: this one is set"),
        ("{Transfer-Encoding: planted}", "headers[0]: expected another header: this one is about the conn"),
        ("{Proxy-X: planted}", "this one is about the connection"),
        ("{Content-Type: planted}", "this one is set for each request"),
        ("{Idempotency-Key: planted}", "this one is set for each request"),
        ("{Authorization: planted}", "headers[0]: Authorization holds the host key: auth says which"),
        ("{x-API-key: {value: planted}}", "headers[0]: x-API-key holds the host key"),
        ('{"a:b": planted}', "headers[0]: expected the name of a header"),
        ('{"": planted}', "headers[0]: expected the name of a header"),
        ("{X-A: one, x-a: planted}", "headers[1]: x-a is given twice, first in line 1"),
        ("{X-A: one, X-A: planted}", "headers[1]: X-A is given twice, first in line 1"),
        ('{X-A: "planted\\r\\nX: y"}', "headers[0]: expected a header's value"),
        ('{X-A: "planted\\0"}', "headers[0]: expected a header's value"),
        ("{X-A: ''}", "headers[0]: expected a header's value"),
        ("{X-A: 5}", "headers[0]: expected text: put it in quotes"),
        ("{X-A: null}", "headers[0]: expected text: put it in quotes"),
        ("{X-A: [planted]}", "headers[0]: expected text: put it in quotes"),
        ("{X-A: {}}", "headers[0]: expected text, value_from or value, one of them"),
        ("{X-A: {value: planted, value_from: {env: B}}}", "headers[0]: expected text, value_from or value"),
        ("{X-A: {secret: planted}}", "headers[0]: unknown field secret: known are value, value_from"),
        ("{X-A: {value_from: {}}}", "headers[0].value_from: expected env or file, one of them"),
        ("{X-A: {value_from: {env: PGPASSWORD}}}", "value_from.env: expected the variable of an upstream's"),
        ("{X-A: {value_from: {file: planted}}}", "value_from.file: expected the absolute path of a file"),
        ("[planted]", "headers: expected a mapping of names to texts"),
        ("planted", "headers: expected a mapping of names to texts"),
    ],
)
def test_a_wrong_header_is_named_and_its_value_is_not(file: Path, headers: str, message: str) -> None:
    found = problems(file, f"hosts: [{{name: h, base_url: 'https://x', headers: {headers}}}]")
    assert all(problem.startswith("line 1: hosts[0].") for problem in found)
    assert any(message in problem for problem in found)
    assert "planted" not in str(found)


def test_a_wrong_header_is_named_with_its_own_line(file: Path) -> None:
    text = HOST.replace("    X-Team: search\n", "    X-Team: search\n    API-key: x\n    Host: x\n")
    assert problems(file, text) == [
        "line 9: hosts[0].headers[1]: API-key holds the host key: auth says which header does",
        "line 10: hosts[0].headers[2]: expected another header: this one is set for each request",
    ]


@pytest.mark.parametrize(
    ("auth", "header"),
    [("none", "Authorization"), ("x-api-key", "Authorization"), ("{header: X-Key}", "x-api-key")],
)
def test_a_header_that_does_not_authenticate_here_is_the_hosts(file: Path, auth: str, header: str) -> None:
    text = f"hosts: [{{name: h, base_url: 'https://x', auth: {auth}, headers: {{{header}: x}}}}]"
    assert apply(file, text) == ["create host h"]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("auth: basic", "auth: expected one of bearer, x-api-key, api-key, none, or {header: name}"),
        ("auth: [bearer]", "auth: expected one of bearer"),
        ("auth: {header: Host}", "auth.header: expected another header"),
        ("auth: {header: anthropic-version}", "auth.header: expected another header"),
        ("auth: {}", "auth: header is missing"),
        ("query: [a]", "query: expected a mapping of names to texts"),
        ("query: {a: 1}", "query[0]: expected text: put it in quotes"),
        ("query: {api-version: 2024-10-21}", "query[0]: expected text: put it in quotes"),
        ("query: {a: b, a: c}", "query[1]: a is given twice, first in line 1"),
        ('query: {a: "b\\n"}', "query[0]: expected 1-1000 printable characters"),
        ('query: {"": b}', "query[0]: expected 1-1000 printable characters"),
        ("stream_usage: maybe", "stream_usage: expected true or false"),
    ],
)
def test_a_wrong_query_or_auth_is_named(file: Path, field: str, message: str) -> None:
    (only,) = problems(file, f"hosts: [{{name: h, base_url: 'https://x', {field}}}]")
    assert only.startswith(f"line 1: hosts[0].{message}")


def test_a_host_that_is_pruned_takes_its_headers_along(file: Path) -> None:
    apply(file, HOST)
    assert apply(file, "providers: [{name: p}]", prune=True) == ["create provider p", "delete host h"]
    assert not HostHeader.objects.exists()
