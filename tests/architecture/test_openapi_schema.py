"""The OpenAPI document in the repository is the code's, and names every route."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver
from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from relaybatch.api_docs.document import document
from tests.support.run.conformance import assert_example_conforms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILE = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
# Pages for people, and what answers where nothing is served.
NO_API = ("", "admin", "docs")


def test_the_file_is_current(tmp_path: Path) -> None:
    made = tmp_path / "openapi.yaml"
    call_command("openapi", file=made)
    assert made.read_text() == FILE.read_text(), "run make schema"


def test_it_is_an_openapi_document_with_valid_schemas() -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(document()).iter_errors()] == []


def test_every_route_and_method_is_described() -> None:
    served = set(_routes(get_resolver().url_patterns))
    described = {(path, method) for path, operations in document()["paths"].items() for method in operations}
    assert described == served


def test_operation_ids_are_unique_and_references_lead_somewhere() -> None:
    names = [operation["operationId"] for operation in _operations()]
    assert len(set(names)) == len(names)
    for reference in _references(document()):
        target: Any = document()
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]


def test_its_version_is_the_projects() -> None:
    project = tomllib.loads((FILE.parents[1] / "pyproject.toml").read_text())["project"]
    assert document()["info"]["version"] == project["version"]


def test_each_example_of_an_answer_is_what_its_schema_says() -> None:
    examples = [each for operation in _operations() for each in _examples(operation["responses"].values())]
    assert len(examples) == 29
    for content, value in examples:
        assert_example_conforms(content, value, str(value)[:80])


def test_each_example_of_a_request_is_what_its_schema_says() -> None:
    examples = [each for operation in _operations() for each in _examples([operation.get("requestBody", {})])]
    assert len(examples) > 3
    for content, value in examples:
        schema = content["schema"] | {"components": document()["components"]}
        assert [error.message for error in Draft202012Validator(schema).iter_errors(value)] == []


def _operations() -> list[dict[str, Any]]:
    return [operation for methods in document()["paths"].values() for operation in methods.values()]


def _examples(bodies: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Any]]:
    """The content that each example stands in, and its value."""
    for body in bodies:
        for content in body.get("content", {}).values():
            yield from ((content, example["value"]) for example in content.get("examples", {}).values())


def _routes(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver) and not route.startswith("admin/"):
            yield from _routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and route not in NO_API and not route.startswith("^"):
            path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route)
            yield from ((path, method) for method in _methods(pattern.callback))


def _methods(view: Any) -> list[str]:
    """What a view set was given, what a class of DRF implements, or GET for a function of ours."""
    if hasattr(view, "actions"):
        return [method for method in view.actions if method != "head"]
    if hasattr(view, "cls"):
        return [method for method in ("get", "post", "delete") if hasattr(view.cls, method)]
    return ["get"]


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name == "$ref":
                yield part
            else:
                yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)
