"""The OpenAPI document of every route, put together from the operations that the apps list."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec

from batches.openapi import OPERATIONS as BATCHES
from relaybatch.api_docs.service_operations import OPERATIONS as SERVICE
from relaybatch.http.openapi import error_envelope, error_responses
from routing.openapi import OPERATIONS as ROUTING
from usage.openapi import OPERATIONS as USAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from relaybatch.http.openapi import Described, Schema

VERSION = "0.1.0"
OPERATIONS = (*BATCHES, *USAGE, *ROUTING, *SERVICE)

_DESCRIPTION = """A self-hosted batch gateway for LLM inference.

* Credential: a relay key or an inference token, as `Authorization: Bearer` or as `x-api-key`.
* Every answer carries `request-id`, which is in the service's log lines of that request.
* A trailing slash is optional.
* Errors have OpenAI's form; under `/v1/messages/` they have Anthropic's.
"""
_SECURITY_SCHEMES = {
    "relayKey": {"type": "http", "scheme": "bearer", "description": "A relay key or an inference token."},
    "xApiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "The same, as Anthropic's clients send it.",
    },
    "adminToken": {"type": "http", "scheme": "bearer", "description": "RELAY_ADMIN_TOKEN, for operators."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "The session of the admin's login.",
    },
    "csrfToken": {
        "type": "apiKey",
        "in": "header",
        "name": "X-CSRFToken",
        "description": "The value of the `csrftoken` cookie.",
    },
}
_COMPONENT = "#/components/schemas/{name}"
_REQUEST_ID = {
    "description": "The id of this request, as in the service's log; also in `x-request-id`.",
    "required": True,
    "schema": {"type": "string"},
}


@functools.cache
def document() -> Schema:
    """The whole document, in OpenAPI 3.1."""
    described = [each for operation in OPERATIONS for each in operation.described()]
    reference, schemas = _schemas([*described, *(error_envelope(operation.path) for operation in OPERATIONS)])
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = operation.render(reference)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Relaybatch", "version": VERSION, "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": error_responses(OPERATIONS, reference),
            "headers": {"RequestId": _REQUEST_ID},
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def _schemas(described: list[Described]) -> tuple[Callable[[Described], Schema], dict[str, Schema]]:
    """The function that gives the schema to be written for each, and the components that these refer to.

    Schemas that were written out become components as well, by their titles.
    """
    parts = [part for each in described for part in (each if isinstance(each, tuple) else (each,))]
    types = list(dict.fromkeys(part for part in parts if isinstance(part, type)))
    found, components = msgspec.json.schema_components(types, ref_template=_COMPONENT)
    schema_by_type = dict(zip(types, found, strict=True))
    written = {part["title"]: part for part in parts if isinstance(part, dict) and "title" in part}

    def reference(each: Described) -> Schema:
        if isinstance(each, tuple):
            return {"anyOf": [reference(part) for part in each]}
        if isinstance(each, dict):
            return {"$ref": _COMPONENT.format(name=each["title"])} if "title" in each else each
        return schema_by_type[each]

    return reference, components | written
