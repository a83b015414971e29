"""What a person can hold: few files in a folder, short files, and unit tests that stand where the code stands."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("batches", "relaybatch", "routing", "usage")
MAX_FILES = 15
NUMBERED = ("migrations", "adr")
"""Folders of records in the order in which they were made: they grow, and nobody looks for a place in them."""
MAX_LINES = 300
MAX_TEST_LINES = 400


def tracked_files() -> list[Path]:
    """Of the repository; without Git's list, whatever is not hidden and no product of running it."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [path for path in map(Path, listed.stdout.splitlines()) if (ROOT / path).exists()]
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [path for path in found if not any(part.startswith((".", "__pycache__")) for part in path.parts)]


FILES = tracked_files()
PYTHON_FILES = [path for path in FILES if path.suffix == ".py" and "migrations" not in path.parts]


def test_no_folder_has_more_files_than_can_be_taken_in() -> None:
    counts = Counter(str(path.parent) for path in FILES if path.parent.name not in NUMBERED)
    assert {folder: count for folder, count in counts.items() if count > MAX_FILES} == {}


def test_no_python_file_is_longer_than_can_be_held() -> None:
    assert {str(path): length(path) for path in PYTHON_FILES if length(path) > max_lines(path)} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_unit_tests_stand_where_the_code_stands(package: str) -> None:
    tests = ROOT / "tests" / "unit" / package
    rooms = {path.relative_to(tests).parent for path in tests.rglob("test_*.py")}
    assert [str(room) for room in rooms if not (ROOT / package / room).is_dir()] == []


def length(path: Path) -> int:
    return len((ROOT / path).read_text().splitlines())


def max_lines(path: Path) -> int:
    return MAX_TEST_LINES if path.parts[0] == "tests" else MAX_LINES
