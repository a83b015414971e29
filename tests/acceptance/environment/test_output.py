"""A command's output may be lost (encoding, closed pipe, full disk); its exit code still says what was done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from routing.credentials.relay_keys import hash_value
from routing.models import InferenceToken, Provider, RelayKey, User
from tests.support.rows.catalog import make_catalog
from tests.support.servers.deployment import ROOT, deployment_environment

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

pytestmark = pytest.mark.django_db(transaction=True)

SKY = "青空"
ESCAPED = "\\u9752\\u7a7a"
ASCII = {
    "LC_ALL": "C",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONUTF8": "0",
    "PYTHONIOENCODING": "ascii",
    "PYTHONUNBUFFERED": "",
}
FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="this system has no /dev/full")
NO_SPACE = "No space left on device"


def run(*arguments: str | bytes | Path, **streams: Any) -> tuple[int, str, str]:
    """Run a command in an ASCII locale. Returns exit code, stdout and stderr; `streams` may replace these."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=deployment_environment() | ASCII,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )
    return done.returncode, (done.stdout or b"").decode("ascii"), (done.stderr or b"").decode("ascii")


def run_to(device: str, *arguments: str) -> tuple[int, str, str]:
    with open(device, "wb") as file:
        return run(*arguments, stdout=file)


def run_to_a_closed_pipe(*arguments: str) -> tuple[int, str, str]:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return run(*arguments, stdout=writing)
    finally:
        os.close(writing)


@pytest.fixture
def catalog_file(tmp_path: Path) -> Path:
    path = tmp_path / f"{SKY}.yaml"
    path.write_text(f"providers:\n  - name: {SKY}\n", encoding="utf-8")
    return path


@pytest.fixture
def rows(transactional_db: None) -> SimpleNamespace:
    rows = make_catalog("http://127.0.0.1:9", suffix="1")
    rows.user = User.objects.create_user("ana", project=rows.project, policy=rows.policy)
    return rows


def test_what_ascii_cannot_say_is_escaped(catalog_file: Path) -> None:
    assert run("apply", catalog_file) == (0, f"create provider {ESCAPED}\n", "")
    assert Provider.objects.filter(name=SKY).exists()


def test_as_json_it_stays_json(catalog_file: Path) -> None:
    code, out, err = run("apply", catalog_file, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["changes"][0]["name"] == SKY


def test_a_problem_is_told_as_well(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(f"models:\n  - {{name: m, provider: {SKY}}}\n", encoding="utf-8")
    code, out, err = run("apply", path)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert ESCAPED in err


def test_names_may_be_given_in_any_script(rows: SimpleNamespace) -> None:
    rows.project.name = SKY
    rows.project.save()
    code, out, err = run("create_user", SKY, "--project", SKY, "--policy", "policy1")
    assert (code, err) == (0, ""), out
    assert User.objects.get(username=SKY).project == rows.project


@pytest.mark.parametrize("name", [b"\xff", "nobody 青".encode(), "nobody 青".encode("euc-jp")])
def test_a_name_that_is_nobodys_is_refused_in_one_line(rows: SimpleNamespace, name: bytes) -> None:
    code, out, err = run("create_user", "ana2", "--project", name, "--policy", "policy1")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("no project '")


@needs_full
def test_on_a_full_disk_a_change_is_made_all_the_same_and_told_on_stderr(catalog_file: Path) -> None:
    message = f"done, but the answer could not be written: {NO_SPACE}\n"
    assert run_to(FULL, "apply", str(catalog_file)) == (0, "", message)
    assert Provider.objects.filter(name=SKY).exists()


@needs_full
def test_a_warning_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(
        "providers: [{name: p}]\nhosts: [{name: h, base_url: https://h.example}]\n"
        "models: [{name: m, provider: p, bindings: [{host: h, adapter: openai}]}]\n"
    )
    with open(FULL, "wb") as file:
        code, out, _ = run("apply", path, stderr=file)
    assert (code, out.splitlines()[-1]) == (0, "create model m")
    code, out, err = run("apply", path, stderr=subprocess.PIPE)
    assert (code, out, err.count("warning: ")) == (0, "nothing to change\n", 1)


def test_a_reader_that_has_read_enough_is_no_trouble(catalog_file: Path) -> None:
    assert run_to_a_closed_pipe("apply", str(catalog_file)) == (0, "", "")
    assert Provider.objects.filter(name=SKY).exists()


def test_without_a_stdout_a_change_is_made_all_the_same(catalog_file: Path) -> None:
    message = "done, but the answer could not be written: Bad file descriptor\n"
    assert run("apply", str(catalog_file), stdout=None, preexec_fn=lambda: os.close(1)) == (0, "", message)
    assert Provider.objects.filter(name=SKY).exists()


@needs_full
def test_a_failure_is_one_also_where_stderr_is_full_or_closed() -> None:
    with open(FULL, "wb") as full:
        assert run("apply", "/nowhere", stderr=full) == (1, "", "")
    assert run("apply", "/nowhere", stderr=None, preexec_fn=lambda: os.close(2)) == (1, "", "")


@needs_full
def test_a_key_that_cannot_be_shown_is_not_made(rows: SimpleNamespace) -> None:
    before = RelayKey.objects.count()
    message = f"nothing was done: the answer could not be written: {NO_SPACE}\n"
    assert run_to(FULL, "create_key", "--service-account", "account1") == (1, "", message)
    assert RelayKey.objects.count() == before


def test_a_key_whose_reader_is_gone_keeps_its_value(rows: SimpleNamespace) -> None:
    message = "nothing was done: the answer could not be written: Broken pipe\n"
    assert run_to_a_closed_pipe("rotate_key", str(rows.relay_key.id), "--json") == (1, "", message)
    assert RelayKey.objects.get(id=rows.relay_key.id).key_hash == hash_value(rows.relay_key_value)


def test_a_token_that_cannot_be_shown_is_not_minted(rows: SimpleNamespace) -> None:
    message = "nothing was done: the answer could not be written: Bad file descriptor\n"
    arguments = ("mint_token", "--user", "ana")
    assert run(*arguments, stdout=None, preexec_fn=lambda: os.close(1)) == (1, "", message)
    assert not InferenceToken.objects.exists()


@needs_full
def test_a_start_that_is_refused_ends_with_its_code_also_where_stderr_is_full() -> None:
    environment = deployment_environment() | {"RELAY_BATCH_MAX_ITEMS": "many"}
    with open(FULL, "wb") as full:
        command = [sys.executable, "manage.py", "check_usage"]
        done = subprocess.run(command, cwd=ROOT, env=environment, stderr=full, check=False)
    assert done.returncode == 1


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_line_is_written_whatever_the_encoding(form: str) -> None:
    code = f"import django; django.setup(); import logging; logging.getLogger('a').warning('{ESCAPED}')"
    done = subprocess.run(
        [sys.executable, "-c", f"import relaybatch; {code}"],
        cwd=ROOT,
        env=deployment_environment() | ASCII | {"LOG_FORMAT": form},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert ESCAPED in done.stderr
