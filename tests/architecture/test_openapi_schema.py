"""The OpenAPI document in the repository is the code's, and names every route."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver
from openapi_spec_validator import OpenAPIV31SpecValidator

from relaybatch.api_docs.document import document

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    operations = [operation for methods in document()["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for reference in _references(document()):
        target: Any = document()
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]


def test_a_credential_is_a_bearer_or_an_api_key_whichever_is_sent() -> None:
    assert document()["paths"]["/v1/batches"]["post"]["security"] == [{"relayKey": []}, {"xApiKey": []}]


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
