"""Documents lead a newcomer to files: what they name exists, and no room is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TOPS = "batches|bench|docs|examples|relaybatch|routing|tests|usage"
# `routing/gate/scripts/`, `batches/execution/execute.py`; not a URL, and nothing with a placeholder.
PATH = re.compile(rf"(?<![\w/.:-])(?:{TOPS})/[\w/.-]*\w/?(?![\w<{{])")
DOCUMENTS = [
    path
    for path in sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob(".env.example")])
    if path.name != "CHANGELOG.md"
]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_document_names_exist(page: Path) -> None:
    assert [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("app", ["batches", "routing"])
def test_the_architecture_says_what_each_room_answers(app: str) -> None:
    page = (DOCS / "architecture.md").read_text()
    section = page.split(f"### The rooms of `{app}`")[1].split("\n#")[0]
    explained = re.findall(r"^\| `(\w+)/` \|", section, re.MULTILINE)
    without = {"admin", "management", "migrations"}  # the same in every app
    rooms = {path.parent.name for path in (ROOT / app).glob("*/__init__.py")}
    assert rooms - without == set(explained) - without


def test_every_page_is_on_the_map() -> None:
    page = (DOCS / "README.md").read_text()
    linked = {(DOCS / link).resolve() for link in re.findall(r"\]\(([^)#]+)", page)}
    assert {path for path in DOCS.rglob("*.md") if path.name != "README.md"} - linked == set()


def test_decisions_are_numbered_without_gaps_and_say_what_was_decided() -> None:
    records = sorted((DOCS / "adr").glob("*.md"))
    assert [path.name[:4] for path in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    for path in records:
        text = path.read_text()
        assert text.startswith(f"# {path.name[:4]}: ")
        assert re.findall(r"^\*\*(Context|Decision|Consequences)\.", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
        ]
