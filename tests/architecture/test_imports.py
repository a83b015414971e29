"""The import contracts of pyproject.toml name every module, and refuse what they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
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


# A file, what is planted in it, the contract that refuses that, and how it names what is wrong.
PLANTED = [
    (
        "batches/results/status.py",
        "from relaybatch.http.middleware import RequestId",
        "wiring",
        "batches.results.status -> relaybatch.http.middleware",
    ),
    ("usage/pricing.py", "import relaybatch.settings", "wiring", "usage.pricing -> relaybatch.settings"),
    ("routing/money.py", "from usage import pricing", "layers", "routing.money -> usage.pricing"),
    ("relaybatch/db/clock.py", "import routing.money", "layers", "relaybatch.db.clock -> routing.money"),
    (
        "usage/ledger.py",
        "from relaybatch.admin import cells",
        "admin",
        "usage.ledger -> relaybatch.admin.cells",
    ),
    (
        "batches/execution/claim.py",
        "import batches.views",
        "batches",
        "batches.execution.claim -> batches.views",
    ),
    (
        "batches/dialects/chat.py",
        "import batches.execution.claim",
        "dialects",
        "batches.dialects.chat -> batches.execution.claim",
    ),
    (
        "batches/submission/accept.py",
        "import rest_framework",
        "frameworks",
        "batches.submission.accept -> rest_framework",
    ),
    ("routing/adapters/adapter.py", "import django", "pure", "routing.adapters.adapter -> django"),
    (
        "routing/calls/call.py",
        "from routing.upstream import send",
        "acyclic",
        "- .calls -> .upstream (1 import)",
    ),
]


@pytest.fixture(scope="module")
def broken_by(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What `lint-imports` says of each contract, over a copy of the packages with all imports planted."""
    folder = tmp_path_factory.mktemp("planted")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for file, line, *_ in PLANTED:
        planted = folder / file
        planted.write_text(f"{planted.read_text()}\n{line}\n")
    output = lint(folder)
    titles = {contract["name"]: contract["id"] for contract in CONTRACTS.values()}
    parts = re.split(rf"^({'|'.join(map(re.escape, titles))})\n-+$", output, flags=re.MULTILINE)
    return {titles[title]: said for title, said in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize(("broken", "said"), [row[2:] for row in PLANTED])
def test_a_planted_import_is_refused(broken_by: dict[str, str], broken: str, said: str) -> None:
    assert said in broken_by[broken]


def lint(folder: Path) -> str:
    """The output of `lint-imports` over the packages of `folder`, which it has to refuse."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
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
