"""Parsers of the fields that only hosts and host keys have: query, headers, `auth`, and where a secret is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from routing.catalog.document import line_of
from routing.catalog.fields import validators
from routing.catalog.fields.parsers import record, text
from routing.catalog.fields.records import Field, ParseContext
from routing.catalog.problems import InvalidValue, format_name
from routing.hosts.headers import AUTH_SCHEMES, is_credential_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EXPECTED_AUTH = f"expected one of {', '.join(AUTH_SCHEMES)}, or {{header: name}}"
_NO_VALUE = {"text": "", "env_name": "", "file_path": "", "secret": None}


def _check_one_source(source: dict[str, Any]) -> Iterator[str]:
    if bool(source["env_name"]) == bool(source["file_path"]):
        yield "expected env or file, one of them"


_SOURCE = record(
    Field("env", text(validators.environment_name), default="", value_key="env_name"),
    Field("file", text(validators.file_path), default="", value_key="file_path"),
    check=_check_one_source,
)


def _check_one_value(header: dict[str, Any]) -> Iterator[str]:
    if (header["source"] is None) == (header["secret"] is None):
        yield "expected text, value_from or value, one of them"


_SECRET_HEADER = record(
    Field("value_from", _SOURCE, value_key="source"),
    Field("value", text(validators.header_value), value_key="secret"),
    check=_check_one_value,
)
_AUTH_HEADER = record(Field("header", text(validators.auth_header), required=True))


def secret_source(node: yaml.Node, path: str, context: ParseContext) -> tuple[str, str]:
    """`(variable's name, file's path)`; one of them is empty."""
    found = _SOURCE(node, path, context)
    return found["env_name"], found["file_path"]


def auth(node: yaml.Node, path: str, context: ParseContext) -> str:
    """An auth scheme, or the name of the header that holds the secret."""
    if isinstance(node, yaml.MappingNode):
        return str(_AUTH_HEADER(node, path, context)["header"])
    if not isinstance(node, yaml.ScalarNode) or node.value not in AUTH_SCHEMES:
        raise InvalidValue(_EXPECTED_AUTH)
    return str(node.value)


def query(node: yaml.Node, path: str, context: ParseContext) -> dict[str, str]:
    entries = _named_entries(node, path, context, validate=validators.query_name, normalize=str)
    return {
        name: context.parse_or_report(text(validators.query_text), value, at) for name, value, at in entries
    }


def headers(node: yaml.Node, path: str, context: ParseContext) -> tuple[dict[str, Any], ...]:
    """A record for each header; `line` and `path` say where it is in the file."""
    return tuple(
        {"name": name, "line": line_of(value), "path": at, **_parse_header_value(name, value, at, context)}
        for name, value, at in _named_entries(
            node, path, context, validate=validators.header_name, normalize=str.lower
        )
    )


def _parse_header_value(name: str, node: yaml.Node, path: str, context: ParseContext) -> dict[str, Any]:
    """The header's value. Text is a secret too where the header's name is a credential's."""
    if isinstance(node, yaml.MappingNode):
        found = context.parse_or_report(_SECRET_HEADER, node, path) or {}
        return {**_NO_VALUE, "secret": found.get("secret"), **(found.get("source") or {})}
    plain = context.parse_or_report(text(validators.header_value), node, path)
    return {**_NO_VALUE, "secret" if is_credential_header(name) else "text": plain}


def _named_entries(
    node: yaml.Node,
    path: str,
    context: ParseContext,
    *,
    validate: Callable[[str], str],
    normalize: Callable[[str], str],
) -> Iterator[tuple[str, yaml.Node, str]]:
    """`(name, value, path)` for each entry of a mapping whose names are the operator's own.

    Two names that `normalize` makes equal are reported as given twice.
    """
    if not isinstance(node, yaml.MappingNode):
        raise InvalidValue("expected a mapping of names to texts")
    lines: dict[str, int] = {}
    for number, (key, value) in enumerate(node.value):
        at = f"{path}[{number}]"
        name = context.parse_or_report(text(validate), key, at)
        if name is None:
            continue
        if normalize(name) in lines:
            context.add_problem(
                key, at, f"{format_name(name)} is given twice, first in line {lines[normalize(name)]}"
            )
        lines.setdefault(normalize(name), line_of(key))
        yield name, value, at
