"""The schema that is in the repository is the one that the code has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from django.core.management import call_command

if TYPE_CHECKING:
    import pytest

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"


def test_the_schema_is_current_and_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "openapi.yaml"
    call_command("spectacular", file=str(made), validate=True, fail_on_warn=True)
    assert capsys.readouterr().err == ""
    assert made.read_text() == SCHEMA.read_text(), "run make schema"
