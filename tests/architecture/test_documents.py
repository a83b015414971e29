"""Documents say what is: every variable, error code, make target and link in them exists, and none is left out."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from batches.dialects.openai.output_lines import LineErrorCode
from batches.file_batches.input_line import InputErrorCode
from relaybatch.quickstart.demo.catalog import PROVIDERS_BY_VARIABLE
from routing.calls.failures import FailureCode
from routing.credentials.credential import DENIAL_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("relaybatch", "batches", "usage", "routing")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Read from the environment, and nobody's to set.
OF_THE_SYSTEM = {"PATH", "MAKELEVEL"}
CODE = re.compile(r"[a-z]+(_[a-z]+)*")
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def test_every_variable_is_in_the_example_once() -> None:
    lines = (ROOT / ".env.example").read_text()
    assert Counter(re.findall(r"^#?([A-Z][A-Z0-9_]*)=", lines, re.MULTILINE)) == Counter(variables())


def test_every_variable_is_in_the_operations_page_once() -> None:
    page = (ROOT / "docs" / "operating" / "operations.md").read_text()
    assert Counter(re.findall(r"^\| `([A-Z][A-Z0-9_]*)` \|", page, re.MULTILINE)) == Counter(variables())


def test_every_error_code_is_documented_and_no_other() -> None:
    page = (ROOT / "docs" / "api" / "errors.md").read_text()
    documented = set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
    assert documented == error_codes()


def test_make_targets_that_documents_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {
        name
        for page in DOCUMENTS
        for name in re.findall(r"`(?:[A-Z_]+=\S+ )*make ([a-z]+)", page.read_text())
    }
    assert {"run", "test"} <= named
    assert named <= targets


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    assert [link for link in links(page) if not leads_somewhere(page, link)] == []


def variables() -> set[str]:
    read = {
        name for path in ("relaybatch/settings.py", "gunicorn.conf.py") for name in variables_of(ROOT / path)
    }
    for path in (ROOT / "relaybatch" / "quickstart").rglob("*.py"):
        read |= set(variables_of(path))
    return (read | set(PROVIDERS_BY_VARIABLE)) - OF_THE_SYSTEM


def variables_of(path: Path) -> Iterator[str]:
    """Names given to `env.…("NAME"`, `url_settings.…("NAME"` and `os.environ.get("NAME"`."""
    for call in calls(path):
        function = ast.unparse(call.func)
        if function.startswith(("env.", "url_settings.")) or function == "os.environ.get":
            name = constant(call.args[0])
            if VARIABLE.fullmatch(name):
                yield name


def error_codes() -> set[str]:
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = {code for path in sources for code in codes_of(path)} | set(DENIAL_MESSAGES) | set(FailureCode)
    found |= set(InputErrorCode) | set(LineErrorCode)
    return {code for code in found if CODE.fullmatch(code)}


def codes_of(path: Path) -> Iterator[str]:
    """`code="…"`, a class's `code = "…"`, `…_CODE = "…"`."""
    for call in calls(path):
        yield from (constant(word.value) for word in call.keywords if word.arg == "code")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and re.fullmatch(r"code|[A-Z]+_CODE", ast.unparse(node.targets[0])):
            yield constant(node.value)


def constant(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    """As the usual viewers make them: lower case, blanks to dashes, without other signs."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
