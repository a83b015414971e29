"""On an invalid variable, every process and command exits with 1 and one line on stderr that names it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.deployment import ROOT, deployment_environment, procfile_command
from tests.support.servers.web import web_process

pytestmark = pytest.mark.django_db

MANAGE = [sys.executable, "manage.py"]
COMMANDS = {
    "web": procfile_command("web"),
    "gunicorn": [str(Path(sys.executable).with_name("gunicorn")), "relaybatch.wsgi"],
    "asgi": [sys.executable, "-c", "import relaybatch.asgi"],
    "worker": procfile_command("worker"),
    "sweeper": procfile_command("sweeper"),
    "migrate": [*MANAGE, "migrate"],
    "check_usage": [*MANAGE, "check_usage", "--json"],
}


def ended(command: list[str], **environment: str) -> tuple[int, str, str]:
    process = subprocess.run(
        command,
        cwd=ROOT,
        env=deployment_environment() | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_variable_is_one_line(name: str) -> None:
    message = "RELAY_BATCH_MAX_ITEMS: expected a whole number from 1 to 1000000\n"
    assert ended(COMMANDS[name], RELAY_BATCH_MAX_ITEMS="many") == (1, "", message)


def test_an_empty_number_of_web_processes_counts_as_unset(tmp_path: Path) -> None:
    with web_process(tmp_path, WEB_CONCURRENCY="") as web:
        assert web.call("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    ("variable", "form"),
    [
        ("WEB_CONCURRENCY", "a whole number from 1 to 1024"),
        ("PORT", "a whole number from 1 to 65535"),
        ("RELAY_SHUTDOWN_GRACE_S", "a whole number from 0 to 86400"),
    ],
)
def test_what_the_web_server_reads_is_typed_as_well(variable: str, form: str) -> None:
    assert ended(COMMANDS["web"], **{variable: "abc"}) == (1, "", f"{variable}: expected {form}\n")
