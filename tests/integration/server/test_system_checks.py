"""System checks report what cannot work, with a hint how to fix it, and need no database."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from batches.checks import check_payload_directory, check_payload_url, check_worker_lost
from tests.support.servers.deployment import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings


def test_a_payload_directory_that_is_there_or_can_be_made_is_fine(settings: Settings, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "to" / "be" / "made"):
        settings.RELAY_BATCH_PAYLOAD_DIR = str(place)
        assert check_payload_directory() == []
    assert list(tmp_path.iterdir()) == [], "a check makes nothing"


def test_a_payload_directory_that_cannot_be_made_is_an_error(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path / "file" / "payloads")
    [error] = check_payload_directory()
    assert error.id == "batches.E001"
    assert f"{tmp_path}/file is no directory" in error.msg
    assert error.hint is not None
    assert "RELAY_BATCH_PAYLOAD_DIR" in error.hint


def test_a_folder_named_by_its_url_is_checked_as_one_named_by_its_path(
    settings: Settings, tmp_path: Path
) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = (tmp_path / "to" / "be" / "made").as_uri()
    assert [*check_payload_directory(), *check_payload_url()] == []
    assert list(tmp_path.iterdir()) == [], "a check makes nothing"
    (tmp_path / "file").write_text("")
    settings.RELAY_BATCH_PAYLOAD_URL = (tmp_path / "file" / "payloads").as_uri()
    [error] = [*check_payload_directory(), *check_payload_url()]
    assert error.id == "batches.E001"
    assert error.msg == (
        f"RELAY_BATCH_PAYLOAD_URL ({tmp_path}/file/payloads): {tmp_path}/file is no directory"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_payload_directory_that_is_not_writable_is_an_error(settings: Settings, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    settings.RELAY_BATCH_PAYLOAD_DIR = str(tmp_path)
    [error] = check_payload_directory()
    assert "not writable" in error.msg


def test_payloads_elsewhere_need_no_directory(settings: Settings) -> None:
    settings.RELAY_BATCH_PAYLOAD_DIR = "/proc/nowhere"
    settings.RELAY_BATCH_PAYLOAD_URL = "postgres:"
    assert check_payload_directory() == []
    assert check_payload_url() == []


def test_a_payload_store_that_cannot_be_opened_is_an_error(settings: Settings) -> None:
    settings.RELAY_BATCH_PAYLOAD_URL = "az://container/of-no-account"
    [error] = check_payload_url()
    assert error.id == "batches.E003"
    assert error.msg == "RELAY_BATCH_PAYLOAD_URL: the payload store cannot be opened"


@pytest.mark.parametrize(("seconds", "errors"), [(1, 1), (2, 1), (3, 0), (30, 0)])
def test_busy_workers_must_not_count_as_lost(settings: Settings, seconds: int, errors: int) -> None:
    settings.RELAY_WORKER_LOST_S = seconds
    assert len(check_worker_lost()) == errors


@pytest.mark.parametrize("https_only", ["off", "on"])
def test_the_deployment_check_is_clean_also_while_the_database_is_unavailable(
    https_only: str, tmp_path: Path
) -> None:
    checked = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env=os.environ
        | {
            "HTTPS_ONLY": https_only,
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nowhere",
            "RELAY_BATCH_PAYLOAD_DIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stderr
    silenced = 4 if https_only == "off" else 0
    assert f"no issues ({silenced} silenced)" in checked.stdout + checked.stderr
