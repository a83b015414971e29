"""Secrets in files: what is read, what is rejected, and that no message holds a file's content."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from routing.secrets.secret_files import SecretFileError, read_secret_file, validate_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "key"


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        (b"sk-1", "sk-1"),
        (b"\n  sk-1 \t\r\n\n", "sk-1"),
        (b"Basic abc", "Basic abc"),
        (b"x" * 8192, "x" * 8192),
    ],
)
def test_a_file_is_read_without_the_white_space_at_its_ends(file: Path, content: bytes, secret: str) -> None:
    file.write_bytes(content)
    assert read_secret_file(str(file)) == secret


def test_a_file_is_read_again_each_time(file: Path) -> None:
    file.write_text("one")
    assert read_secret_file(str(file)) == "one"
    file.write_text("two")
    assert read_secret_file(str(file)) == "two"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "one line"),
        (b" \n", "one line"),
        (b"planted\nsecret", "one line"),
        (b"planted\0", "one line"),
        ("planted-é".encode(), "one line"),
        (b"planted" + b"x" * 8186, "more than 8192 bytes"),
    ],
)
def test_a_file_of_another_form_is_of_no_use(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with pytest.raises(SecretFileError, match=message) as refused:
        read_secret_file(str(file))
    assert "planted" not in str(refused.value)


def test_a_file_that_is_not_there_or_not_readable_is_of_no_use(file: Path) -> None:
    with pytest.raises(SecretFileError, match="cannot be read: No such file"):
        read_secret_file(str(file))
    file.touch()
    with pytest.raises(SecretFileError, match="cannot be read: Not a directory"):
        read_secret_file(str(file / "x"))


def test_a_folder_or_a_pipe_is_of_no_use_and_keeps_nobody_waiting(file: Path, tmp_path: Path) -> None:
    os.mkfifo(file)
    for path in (file, tmp_path):
        with pytest.raises(SecretFileError, match="is no regular file"):
            read_secret_file(str(path))


def test_no_descriptor_is_left_open(file: Path, tmp_path: Path) -> None:
    file.write_text("sk-1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        read_secret_file(str(file))
        with pytest.raises(SecretFileError):
            read_secret_file(str(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "path",
    [
        *("relative", "", "./x", "~/x", "/a\nb", "/a\0b", "/" + "x" * 1000),
        *("/proc/self/environ", "/proc", "/sys/x", "/dev/null", "/dev/../proc/self/environ"),
        *("//proc/self/environ", "/tmp/../proc/1/environ", "/proc/self/root/etc/hostname"),
        *(
            f"{run}/secrets/kubernetes.io/serviceaccount/token"
            for run in ("/run", "/var/run", "/var/run/../run")
        ),
    ],
)
def test_a_path_of_the_system_or_of_no_form_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        validate_path(path)
    with pytest.raises(SecretFileError, match="is no path"):
        read_secret_file(path)


def test_a_link_into_the_system_is_refused(file: Path) -> None:
    file.symlink_to("/proc/self/environ")
    with pytest.raises(ValueError, match="none under /proc"):
        validate_path(str(file))
    with pytest.raises(SecretFileError, match="is no path"):
        read_secret_file(str(file))


@pytest.mark.parametrize(
    "variable",
    [
        *("SECRET_KEY_FILE", "RELAY_MASTER_KEY_FILE", "DATABASE_URL_FILE"),
        *("PGPASSFILE", "PGSSLKEY", "GOOGLE_APPLICATION_CREDENTIALS", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    ],
)
def test_the_deployments_own_files_are_refused_by_whatever_path(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    file.write_text("planted")
    monkeypatch.setenv(variable, str(file))
    symlink, link = tmp_path / "symlink", tmp_path / "link"
    symlink.symlink_to(file)
    link.hardlink_to(file)
    for path in (file, symlink, tmp_path / "x" / ".." / "key"):
        with pytest.raises(ValueError, match="the deployment's own"):
            validate_path(str(path))
    for path in (file, symlink, link):
        with pytest.raises(SecretFileError) as refused:
            read_secret_file(str(path))
        assert "planted" not in str(refused.value)


def test_what_lies_in_a_folder_of_the_deployments_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts and answers, the demo's secrets."""
    monkeypatch.setenv("RELAY_BATCH_PAYLOAD_DIR", str(tmp_path / "payloads"))
    file = tmp_path / "payloads" / "batch" / "requests"
    file.parent.mkdir(parents=True)
    file.write_text("planted")
    with pytest.raises(ValueError, match="the deployment's own"):
        validate_path(str(file))


def test_the_password_file_that_libpq_reads_by_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".pgpass"
    file.write_text("*:*:*:relay:planted")
    with pytest.raises(ValueError, match="the deployment's own"):
        validate_path(str(file))


def test_a_file_that_another_services_variable_names_is_taken(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("sk-1")
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(file))
    assert read_secret_file(validate_path(str(file))) == "sk-1"
