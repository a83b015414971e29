"""Whether an answer is one that the OpenAPI document knows: its status, content type and every member of its body."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any

from django.test import Client
from jsonschema_rs import Draft202012Validator

from relaybatch.api_docs.document import document
from relaybatch.http.error_responses import is_messages_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pytest

# Pages for people, and their files.
PAGES = re.compile(r"/?|/(admin|static|docs)(/.*)?")
# Streams are checked as far as they are small: memory is what some tests measure.
MAX_CHECKED_BYTES = 1 << 20


def assert_conforms(method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """`headers` by lower-case names. Unknown methods have to be a 405.

    Of a path that nobody serves, any error of the whole service will do.
    """
    if PAGES.fullmatch(path):
        return
    where = f"{method} {path} -> {status}"
    assert headers.get("request-id"), where
    response = _documented(method, path.rstrip("/"), status, where)
    if method == "HEAD" or not response.get("content"):
        assert body == b"", where
        return
    content_type = headers["content-type"].partition(";")[0]
    assert content_type in response["content"], f"{where}: {content_type}"
    content = response["content"][content_type]
    if content_type == "application/json":
        _validate(content["schema"], json.loads(body), where)
    elif "x-line-schema" in content:
        _validate_lines(content, body, where)


def assert_example_conforms(content: Mapping[str, Any], example: Any, where: str) -> None:
    if "x-line-schema" in content:
        _validate_lines(content, example, where)
    else:
        _validate(content["schema"], example, where)


def _validate_lines(content: Mapping[str, Any], lines: str | bytes, where: str) -> None:
    for line in lines.splitlines():
        _validate(content["x-line-schema"], json.loads(line), where)


def check_client_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer that Django's test client gets is checked, a streamed one when it has been read."""
    request = Client.request

    def checked_request(client: Client, **environ: Any) -> Any:
        response: Any = request(client, **environ)
        headers = {name.lower(): value for name, value in response.headers.items()}
        method, path, status = environ["REQUEST_METHOD"], environ["PATH_INFO"], response.status_code
        if headers.get("content-encoding"):
            return response
        if response.streaming:
            parts = iter(response.streaming_content)
            response.streaming_content = _checked(method, path, status, headers, parts)
        else:
            assert_conforms(method, path, status, headers, response.content)
        return response

    monkeypatch.setattr(Client, "request", checked_request)


def _checked(
    method: str, path: str, status: int, headers: Mapping[str, str], parts: Iterable[bytes]
) -> Iterator[bytes]:
    kept, size = [], 0
    for part in parts:
        size += len(part)
        if size <= MAX_CHECKED_BYTES:
            kept.append(part)
        yield part
    if size <= MAX_CHECKED_BYTES:
        assert_conforms(method, path, status, headers, b"".join(kept))


def _documented(method: str, path: str, status: int, where: str) -> dict[str, Any]:
    messages = is_messages_path(path)
    operations = _operations(path)
    if operations is None:
        assert status in (400, 404, 500, 503), where
        return _error(messages, status)
    operation = operations.get("get" if method == "HEAD" else method.lower())
    if operation is None:
        assert status == 405, where
        return _error(messages, status)
    assert str(status) in operation["responses"], f"{where}: not in the document"
    return _resolve(operation["responses"][str(status)])


def _error(messages: bool, status: int) -> dict[str, Any]:
    found: dict[str, Any] = document()["components"]["responses"][
        f"{'Messages' if messages else ''}ErrorResponse{status}"
    ]
    return found


def _operations(path: str) -> dict[str, Any] | None:
    for template, operations in document()["paths"].items():
        if re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path):
            return dict(operations)
    return None


def _resolve(response: dict[str, Any]) -> dict[str, Any]:
    target: dict[str, Any] = response
    if "$ref" in response:
        target = document()
        for step in response["$ref"].removeprefix("#/").split("/"):
            target = target[step]
    return target


def _validate(schema: dict[str, Any], value: Any, where: str) -> None:
    problems = [
        f"{error.instance_path}: {error.message}"
        for error in _validator(json.dumps(schema)).iter_errors(value)
    ]
    assert not problems, f"{where}: {problems}"


@functools.cache
def _validator(schema: str) -> Draft202012Validator:
    whole = json.loads(schema) | {"components": {"schemas": _strict(document()["components"]["schemas"])}}
    return Draft202012Validator(whole, validate_formats=True)


def _strict(schema: Any) -> Any:
    """The same, with every member that is not described an error."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _strict(part) for name, part in schema.items()}
    is_closed = isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema
    return strict | ({"additionalProperties": False} if is_closed else {})
