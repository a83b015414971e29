"""The parts of the OpenAPI description: each app lists its operations, `relaybatch.api_docs` puts them together.

https://spec.openapis.org/oas/v3.1.1.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from relaybatch.http.error_envelopes import ErrorResponse, MessagesErrorResponse
from relaybatch.http.error_responses import is_messages_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Schema: TypeAlias = dict[str, Any]
# A type that msgspec can describe, a tuple of types of which it is one, or a schema written out.
Described: TypeAlias = Any

JSON = "application/json"
CREDENTIAL: tuple[Schema, ...] = ({"relayKey": []}, {"xApiKey": []})
OPERATOR: tuple[Schema, ...] = ({"adminToken": []}, {"session": []})
LOGGED_IN: tuple[Schema, ...] = ({"session": [], "csrfToken": []},)
PUBLIC: tuple[Schema, ...] = ()

_ERRORS = {
    400: "The request is malformed: `error.code` and `error.param` say what and where.",
    401: "No credential, or one that is not valid.",
    403: "The credential is valid, and may not do this.",
    404: "No such batch or file of the caller's. Malformed ids are answered in the same way.",
    405: "The path is served, but not with this method: see `Allow`.",
    409: "The state of the batch, or an earlier request with the same `Idempotency-Key`, does not allow it.",
    411: "The body is chunked, which the server in front does not take: send `Content-Length`.",
    413: "The body, or one request in it, is too large.",
    414: "The path with its query is longer than the web server takes.",
    416: "The file has no bytes in the range that `Range` asks for; `Content-Range` gives its size.",
    417: "The `Expect` header asks for something that the web server does not know.",
    429: "The caller would have too many items that are not final.",
    431: "A header, or all of them, are longer than the web server takes.",
    500: "An unexpected error; its `request-id` finds it in the service's log.",
    503: "The database or the payload store is unavailable: try again after `Retry-After` seconds.",
}
# Any route's: a host name that is not allowed, another method, the database's outage, a bug, and what the web server
# rejects by itself.
_ALWAYS = (400, 405, 414, 417, 431, 500, 503)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One media type of a body. `line`: what each line is, of JSON Lines. `examples`: a value by its name."""

    schema: Described
    line: Described | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """`content`: by media type; empty for an answer without a body."""

    description: str
    content: Mapping[str, Content] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path. `errors`: statuses beside those that every route can give.

    The form of an error follows from the path, the parameters of the path from its placeholders.
    """

    method: str
    path: str
    operation_id: str
    tag: str
    summary: str
    description: str = ""
    security: tuple[Schema, ...] = CREDENTIAL
    parameters: tuple[Schema, ...] = ()
    body: Content | None = None
    body_type: str = JSON
    body_required: bool = True
    responses: Mapping[int, Response]
    errors: tuple[int, ...] = ()

    def described(self) -> list[Described]:
        """Every schema that the operation refers to, but for those of errors."""
        contents = [content for each in self.responses.values() for content in each.content.values()]
        contents += [self.body] if self.body else []
        return [each for content in contents for each in (content.schema, content.line) if each is not None]

    def error_statuses(self) -> list[int]:
        """Those of errors in the usual form."""
        credentials = (401,) if self.security else ()
        return sorted({*_ALWAYS, *credentials, *self.errors} - self.responses.keys())

    def render(self, reference: Callable[[Described], Schema]) -> Schema:
        """The operation object. `reference` gives the schema of a type."""
        rendered: Schema = {"operationId": self.operation_id, "tags": [self.tag], "summary": self.summary}
        if self.description:
            rendered["description"] = self.description
        rendered["security"] = list(self.security)
        if parameters := [*_path_parameters(self.path), *self.parameters]:
            rendered["parameters"] = parameters
        if self.body:
            content = {self.body_type: _render_content(self.body, reference)}
            rendered["requestBody"] = {"required": self.body_required, "content": content}
        rendered["responses"] = {
            str(status): _render_response(response, reference) for status, response in self.responses.items()
        } | {
            str(status): {"$ref": f"#/components/responses/{_error_name(self.path, status)}"}
            for status in self.error_statuses()
        }
        return rendered


def json_response(description: str, schema: Described, **examples: Any) -> Response:
    return Response(description=description, content={JSON: Content(schema=schema, examples=examples)})


def query(name: str, description: str, **schema: Any) -> Schema:
    return _parameter(name, "query", description, schema)


def header(name: str, description: str, **schema: Any) -> Schema:
    return _parameter(name, "header", description, schema)


def _parameter(name: str, place: str, description: str, schema: Schema) -> Schema:
    return {"name": name, "in": place, "description": description, "schema": schema or {"type": "string"}}


def _path_parameters(path: str) -> list[Schema]:
    names = re.findall(r"{(\w+)}", path)
    return [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]


def error_responses(
    operations: Iterable[Operation], reference: Callable[[Described], Schema]
) -> dict[str, Schema]:
    """The responses that the operations refer to, by their names."""
    return {
        _error_name(operation.path, status): _render_response(
            json_response(_ERRORS[status], error_envelope(operation.path)), reference
        )
        for operation in operations
        for status in operation.error_statuses()
    }


def error_envelope(path: str) -> type[ErrorResponse | MessagesErrorResponse]:
    return MessagesErrorResponse if is_messages_path(path) else ErrorResponse


def _error_name(path: str, status: int) -> str:
    return f"{error_envelope(path).__name__}{status}"


def _render_response(response: Response, reference: Callable[[Described], Schema]) -> Schema:
    rendered: Schema = {
        "description": response.description,
        "headers": {"request-id": {"$ref": "#/components/headers/RequestId"}},
    }
    if response.content:
        rendered["content"] = {
            media_type: _render_content(content, reference)
            for media_type, content in response.content.items()
        }
    return rendered


def _render_content(content: Content, reference: Callable[[Described], Schema]) -> Schema:
    rendered: Schema = {"schema": reference(content.schema)}
    if content.line is not None:
        rendered["x-line-schema"] = reference(content.line)
    if content.examples:
        rendered["examples"] = {name: {"value": value} for name, value in content.examples.items()}
    return rendered
