"""The import contracts of pyproject.toml name every module, and refuse what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("relaybatch", "batches", "usage", "routing")
CONTRACTS: dict[str, dict[str, Any]] = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}
FLOORS = frozenset(CONTRACTS["layers"]["layers"][-1].split(" : "))
WIRING = frozenset(CONTRACTS["wiring"]["forbidden_modules"])


def test_each_module_of_relaybatch_is_a_floor_or_wiring() -> None:
    assert not FLOORS & WIRING
    assert [name for name in modules_of("relaybatch") if not is_in_a_list(name)] == []


def test_the_lists_name_no_module_that_is_gone() -> None:
    assert not (FLOORS | WIRING) - set(modules_of("relaybatch"))


def test_each_room_of_the_apps_is_bound_by_the_contract_of_frameworks_or_is_an_interface() -> None:
    interfaces = {"admin", "management", "migrations", "openapi", "credentials"}
    bound = CONTRACTS["frameworks"]["source_modules"]
    rooms = {f"{app}.{room}" for app in ("batches", "routing") for room in rooms_of(app) - interfaces}
    assert rooms == set(bound)


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("batches/results/status.py", "from relaybatch.http.middleware import RequestId", "wiring"),
        ("usage/pricing.py", "import relaybatch.settings", "wiring"),
        ("routing/money.py", "from usage import pricing", "layers"),
        ("relaybatch/db/clock.py", "import routing.money", "layers"),
        ("usage/pricing.py", "from relaybatch.admin import cells", "admin"),
        ("batches/execution/claim.py", "import batches.views", "batches"),
        ("batches/dialects/chat.py", "import batches.execution.claim", "dialects"),
        ("batches/submission/accept.py", "import rest_framework", "frameworks"),
        ("routing/adapters/adapter.py", "import django", "pure"),
        ("routing/calls/call.py", "from routing.upstream import send", "acyclic"),
    ],
)
def test_a_planted_import_is_refused(tmp_path: Path, file: str, line: str, broken: str) -> None:
    copy_to(tmp_path)
    planted = tmp_path / file
    planted.write_text(f"{planted.read_text()}\n{line}\n")
    output = lint(tmp_path, contract=broken)
    assert f"{CONTRACTS[broken]['name']} BROKEN" in output


def copy_to(folder: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def lint(folder: Path, *, contract: str) -> str:
    """The output of `lint-imports` over the packages of `folder`."""
    done = subprocess.run(
        ["lint-imports", "--no-cache", "--contract", contract],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def modules_of(package: str) -> list[str]:
    names = (path.relative_to(ROOT).with_suffix("").parts for path in (ROOT / package).rglob("*.py"))
    return [".".join(part for part in parts if part != "__init__") for parts in names]


def rooms_of(app: str) -> set[str]:
    return {path.parent.name for path in (ROOT / app).glob("*/__init__.py")}


def is_in_a_list(module: str) -> bool:
    """Packages that hold both floors and wiring are in none."""
    if any(name.startswith(f"{module}.") for name in FLOORS | WIRING):
        return True
    parts = module.split(".")
    return any(".".join(parts[:length]) in FLOORS | WIRING for length in range(1, len(parts) + 1))
