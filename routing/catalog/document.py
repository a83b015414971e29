"""A catalog file as YAML nodes, which know their lines. No YAML tag constructs a Python object.

YAML aliases (`*name`) are rejected: with them a small file can expand to a huge one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

import yaml

from routing.catalog.problems import CatalogRejected, Problem

if TYPE_CHECKING:
    from pathlib import Path


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not taken: write it out", mark)
        return super().compose_node(parent, index)


def read_document(path: Path) -> yaml.MappingNode:
    """Raises CatalogRejected if the file cannot be read, is no YAML (or JSON, by its name), or no mapping."""
    text = _read_text(path)
    if path.suffix.lower() == ".json":
        _validate_json(text)
        # In JSON a raw tab is only whitespace between values, where YAML's grammar does not allow tabs.
        text = text.replace("\t", " ")
    node = _compose(text)
    if not isinstance(node, yaml.MappingNode):
        _reject(0, "expected a mapping of sections, as hosts: and models:")
    return node


def line_of(node: yaml.Node) -> int:
    """Counted from 1."""
    return int(node.start_mark.line) + 1


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        _reject(0, f"the file cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        _reject(error.object.count(b"\n", 0, error.start) + 1, "expected UTF-8")


def _validate_json(text: str) -> None:
    try:
        json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        _reject(error.lineno, f"no JSON: {error.msg}")
    except RecursionError:
        _reject(0, "nested too deeply")
    except ValueError as error:
        _reject(0, f"no JSON: {error}")


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _compose(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = ": ".join(part for part in (error.context, error.problem) if part)
        _reject(mark.line + 1 if mark else 0, f"no YAML: {message}")
    except yaml.reader.ReaderError as error:
        _reject(text.count("\n", 0, error.position) + 1, "no YAML: a control character stands here")
    except RecursionError:
        _reject(0, "nested too deeply")


def _reject(line: int, message: str) -> NoReturn:
    raise CatalogRejected([Problem(line, message)]) from None
