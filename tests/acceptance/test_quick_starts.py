"""The Python scripts of docs/getting-started/python.md, run as they stand; the others are run by `make test-sdks`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from batches.models import File
from tests.support.run.quick_starts import PRINTED, add_demo_models, assert_printed, quick_start
from tests.support.upstream import prompted_responses

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.servers.deployment import Deployment
    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_quick_starts_in_python_print_their_results(
    web: Web, deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.handler = prompted_responses.answer
    add_demo_models(catalog)
    deployment.worker()
    deployment.sweeper()
    environment = {"PATH": os.environ["PATH"], "URL": web.origin, "RELAY_KEY": catalog.relay_key_value}
    for heading in PRINTED:
        script = tmp_path / "batch.py"
        script.write_text(quick_start("python.md", heading, "python"))
        assert_printed(heading, run(script, environment))
        if heading == "Chat completions":  # It deletes its files.
            assert not File.objects.filter(deleted_at=None).exists()


def run(script: Path, environment: dict[str, str]) -> str:
    """Return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=script.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
