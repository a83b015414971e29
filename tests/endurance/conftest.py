from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import catalog, deployment, web

__all__ = ["catalog", "deployment", "web"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in this folder; the hook gets the tests of all folders."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.endurance)
