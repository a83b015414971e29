"""Applying the text of a catalog file: what changed, or what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from routing.catalog.apply import apply_catalog
from routing.catalog.problems import CatalogRejected

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.yaml"


def apply(file: Path, text: str, *, prune: bool = False) -> list[str]:
    """The changes, a line each."""
    file.write_text(text)
    return [str(change) for change in apply_catalog(file, prune=prune)]


def problems(file: Path, text: str, *, prune: bool = False) -> list[str]:
    """The problems, a line each; the file must have some."""
    file.write_text(text)
    with pytest.raises(CatalogRejected) as rejected:
        apply_catalog(file, prune=prune)
    return [str(problem) for problem in rejected.value.problems]
