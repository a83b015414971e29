"""Files as YAML nodes. What is no catalog at all is in tests/integration/catalog/test_apply_problems.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from routing.catalog.document import line_of, read_document
from routing.catalog.problems import CatalogRejected

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, text: str, name: str = "catalog.yaml") -> list[tuple[str, int]]:
    """`(key, line)` of each section."""
    path = folder / name
    path.write_text(text)
    return [(key.value, line_of(key)) for key, _ in read_document(path).value]


def test_nodes_know_their_lines(tmp_path: Path) -> None:
    assert read(tmp_path, "# comment\nhosts: []\n\nmodels: []\n") == [("hosts", 2), ("models", 4)]


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeffhosts: []\n") == [("hosts", 1)]


def test_json_may_be_indented_by_tabs_and_yaml_may_not(tmp_path: Path) -> None:
    text = '{\n\t"hosts":\n\t[]\n}'
    assert read(tmp_path, text, "catalog.json") == [("hosts", 2)]
    with pytest.raises(CatalogRejected, match="no YAML"):
        read(tmp_path, "hosts:\n\t- x\n")


def test_a_tag_constructs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text("hosts: !!python/object/apply:os.system [false]\n")
    ((_, node),) = read_document(path).value
    assert isinstance(node, yaml.SequenceNode)
