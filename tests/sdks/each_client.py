"""Run clients other than those in requirements-dev.txt, each in its own environment: `make test-sdks`.

A client is a script in `clients/` that exits with an error when an answer is not as expected. Its packages are pinned
in `requirements/` and cached below $XDG_CACHE_HOME/relaybatch-sdks.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.run.quick_starts import PRINTED, add_demo_models, assert_printed, quick_start
from tests.support.upstream import prompted_responses

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relaybatch-sdks"
INSTALL_SECONDS, RUN_SECONDS = 600, 120
# The packages of this very environment: the newest `openai`, as pinned in requirements-dev.txt.
OWN = "own"
# The name of its requirements, and its script; the slowest first. Curator is built on LiteLLM.
PYTHON_CLIENTS = (
    ("curator", "curator_batches.py"),
    ("curator", "litellm_batches.py"),
    (OWN, "openai_files.py"),
    ("openai-2", "openai_files.py"),
    ("openai-1", "openai_files.py"),
    ("inspect-ai", "inspect_ai_batches.py"),
    ("instructor", "instructor_batches.py"),
    ("any-llm", "any_llm_batches.py"),
    ("openapi-python-client", "generated_client.py"),
    ("anthropic-0", "anthropic_sdk.py"),
    ("anthropic-1", "anthropic_sdk.py"),
)
needs_node = pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="node is not here")
NODE_CLIENTS = ("openai_files.mjs", "openai.mjs", "anthropic.mjs")


@pytest.fixture
def environment(
    web: Web, deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream
) -> dict[str, str]:
    """The variables that a client needs; no other variable of ours is set."""
    upstream.handler = prompted_responses.answer
    deployment.worker()
    deployment.sweeper()
    inherited = {
        name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")
    }
    return inherited | {
        "URL": web.origin,
        "RELAY_KEY": catalog.relay_key_value,
        "ODD": "line\u2028para\u2029next\u0085",
    }


@pytest.mark.parametrize(
    ("requirements", "script"), PYTHON_CLIENTS, ids=["-".join(client) for client in PYTHON_CLIENTS]
)
def test_a_python_client_runs_batches_to_their_end(
    environment: dict[str, str], requirements: str, script: str
) -> None:
    python = Path(sys.executable)
    if requirements != OWN:
        python = _virtual_environment(HERE / "requirements" / f"{requirements}.txt")
    _run([str(python), "-W", "ignore", str(HERE / "clients" / script)], environment, seconds=RUN_SECONDS)


@needs_node
@pytest.mark.parametrize("script", NODE_CLIENTS)
def test_a_node_client_runs_batches_to_their_end(environment: dict[str, str], script: str) -> None:
    folder = _node_modules(HERE / "requirements" / "package.json")
    shutil.copy(HERE / "clients" / script, folder)
    _run(["node", str(folder / script)], environment, seconds=RUN_SECONDS)


@needs_node
def test_the_quick_starts_in_typescript_print_their_results(
    environment: dict[str, str], catalog: SimpleNamespace
) -> None:
    add_demo_models(catalog)
    folder = _node_modules(HERE / "requirements" / "package.json")
    for heading in PRINTED:
        script = folder / f"{heading}.mjs"
        script.write_text(quick_start("typescript.md", heading, "typescript"))
        assert_printed(heading, _run(["node", str(script)], environment, seconds=RUN_SECONDS))


def _virtual_environment(requirements: Path) -> Path:
    folder = _cache_folder(requirements)
    python = folder / "bin" / "python"
    with _installing(folder) as is_needed:
        if is_needed:
            _run([sys.executable, "-m", "venv", str(folder)], dict(os.environ), seconds=INSTALL_SECONDS)
            install = ["-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check"]
            _run([str(python), *install, "-r", str(requirements)], dict(os.environ), seconds=INSTALL_SECONDS)
    return python


def _node_modules(package: Path) -> Path:
    folder = _cache_folder(package)
    with _installing(folder) as is_needed:
        if is_needed:
            folder.mkdir()
            shutil.copy(package, folder)
            install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]
            _run([*install, str(folder)], dict(os.environ), seconds=INSTALL_SECONDS)
    return folder


@contextlib.contextmanager
def _installing(folder: Path) -> Iterator[bool]:
    """Yield whether the packages are still to be installed; another process that wants them waits meanwhile."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = folder / "complete"
        is_needed = not complete.exists()
        if is_needed:
            shutil.rmtree(folder, ignore_errors=True)
        yield is_needed
        complete.touch()


def _cache_folder(pins: Path) -> Path:
    """The folder for these pins and this version of Python."""
    key = f"{sys.version_info[:2]}".encode() + pins.read_bytes()
    return CACHE / f"{pins.stem}-{hashlib.sha256(key).hexdigest()[:12]}"


def _run(command: list[str], environment: dict[str, str], *, seconds: int) -> str:
    """Return what it printed."""
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
