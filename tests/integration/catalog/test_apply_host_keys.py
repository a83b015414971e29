"""`manage.py apply` and host keys: where their secrets are, and hosts that are sent none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from routing.models import HostKey
from tests.support.calls.catalog_files import apply, file, problems

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["file"]
pytestmark = pytest.mark.django_db


def keyless(auth: str) -> str:
    return f"hosts: [{{name: h, base_url: 'https://x', auth: {auth}}}]\nhost_keys: [{{name: k, host: h}}]\n"


def test_a_host_that_is_sent_no_key_has_one_without_a_value(file: Path) -> None:
    assert apply(file, keyless("none")) == ["create host h", "create host_key k"]
    assert apply(file, keyless("none")) == []
    assert problems(file, keyless("bearer")) == [
        "line 2: host_keys[0]: expected value_from or value, one of them: host h is not auth: none"
    ]


def test_a_host_cannot_begin_to_authenticate_over_a_key_without_a_value(file: Path) -> None:
    apply(file, keyless("none"))
    host = "hosts: [{name: h, base_url: 'https://x'}]\n"
    assert problems(file, host) == ["line 1: hosts[0]: host_key k has no value, as auth: none alone allows"]
    assert problems(file, "host_keys: [{name: l, host: h}, {name: k, host: m}]\n")
    assert apply(file, host + "host_keys: [{name: k, host: h, value: planted}]") == [
        "update host h: auth",
        "update host_key k: value",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{env: A, file: /b}", "host_keys[0].value_from: expected env or file, one of them"),
        ("{}", "host_keys[0].value_from: expected env or file, one of them"),
        ("{file: b}", "host_keys[0].value_from.file: expected the absolute path of a file"),
        ("{file: /proc/self/environ}", "value_from.file: expected a file of an upstream's key: none under"),
        ("{file: //proc/self/environ}", "value_from.file: expected a file of an upstream's key: none under"),
        ("{env: azure_openai_api_key}", "this one is the deployment's own"),
        ("{env: GOOGLE_API_KEY}", "this one is the deployment's own"),
        ("{env: Public_Url}", "this one is the deployment's own"),
    ],
)
def test_a_place_that_holds_no_upstreams_secret_is_refused(file: Path, source: str, message: str) -> None:
    text = f"hosts: [{{name: h, base_url: 'https://x'}}]\nhost_keys: [{{name: k, host: h, value_from: {source}}}]"
    first, *_ = problems(file, text)
    assert first.startswith("line 2: ")
    assert message in first


def test_a_host_key_moves_between_its_places(file: Path) -> None:
    host = "hosts: [{name: h, base_url: 'https://x'}]\nhost_keys: [{name: k, host: h, SOURCE}]"
    apply(file, host.replace("SOURCE", "value: planted"))
    in_file = host.replace("SOURCE", "value_from: {file: /run/secrets/x}")
    assert apply(file, in_file) == ["update host_key k: value_from, value"]
    assert apply(file, in_file) == []
    row = HostKey.objects.get()
    assert (row.env_name, row.file_path, row.secret_encrypted) == ("", "/run/secrets/x", None)
    apply(file, host.replace("SOURCE", "value_from: {env: A}"))
    assert HostKey.objects.filter(env_name="A", file_path="").exists()
