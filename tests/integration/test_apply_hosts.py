"""`manage.py apply` and what belongs to a host: its base URL, and the models that are bound to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from routing.catalog.applying import apply_catalog
from routing.catalog.problems import CatalogRefused
from routing.models import Binding, Host

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db

PLACE = "which cannot stand for {model}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.yaml"


def apply(file: Path, text: str, *, prune: bool = False) -> list[str]:
    """What changed."""
    file.write_text(text)
    return [str(change) for change in apply_catalog(file, prune=prune)]


def problems(file: Path, text: str, *, prune: bool = False) -> list[str]:
    file.write_text(text)
    with pytest.raises(CatalogRefused) as refused:
        apply_catalog(file, prune=prune)
    return [str(problem) for problem in refused.value.problems]


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
    ("url", "words"),
    [
        ("http://h/a/../b", "expected a path without the segments . and .."),
        ("http://h/%2e%2e", "expected a path without the segments . and .."),
        ("http://{model}/", "expected {model} in the path alone"),
        ("http://h/{deployment}", "expected no braces in the path but those of {model}"),
        ("http://h/%", "expected two hexadecimal digits behind each % in the path"),
    ],
)
def test_a_base_url_that_must_not_be_sent_is_named(file: Path, url: str, words: str) -> None:
    assert problems(file, f"hosts: [{{name: h, base_url: '{url}'}}]") == [
        f"line 1: hosts[0].base_url: {words}"
    ]
