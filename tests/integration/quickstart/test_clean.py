"""`make clean` deletes a demo's data and nothing else, whatever RELAYBATCH_HOME is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def run_clean(home: Path) -> int:
    command = [sys.executable, "-m", "relaybatch.quickstart.clean", str(home)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode


def test_a_directory_that_is_no_demos_home_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    assert run_clean(tmp_path) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_home_loses_what_a_demo_made_and_keeps_the_rest(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").write_text("{}")
    (tmp_path / "logs").mkdir()
    (tmp_path / "precious").write_text("x")
    assert run_clean(tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_home_that_held_nothing_else_is_gone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "secrets.json").write_text("{}")
    assert run_clean(home) == 0
    assert not home.exists()
