"""Read secrets from files: small, of one line, read again whenever the catalog is.

Whoever edits the catalog chooses the host that a secret is sent to. So the files of the deployment, the system and the
container are rejected. No message holds the content of a file.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from routing.secrets.reserved_env_vars import is_reserved

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FILE_BYTES = 8192
MAX_PATH_CHARACTERS = 1000

_SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")
# The pod's own token, which gives access to the cluster: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
_POD_FOLDERS = ("/run/secrets/kubernetes.io", "/var/run/secrets/kubernetes.io")
# https://www.postgresql.org/docs/current/libpq-pgpass.html
_LIBPQ_PGPASS = "~/.pgpass"
_ONE_LINE = re.compile(r"[\t\x20-\x7e]+")
# Opening a FIFO without a writer would block.
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class SecretFileError(Exception):
    """Why the file cannot be used; the message is a few words that follow its path."""


def validate_path(text: str) -> str:
    """Validate and return the path. The file need not exist here: the workers read it. Raises ValueError."""
    if not text.startswith("/") or not text.isprintable() or len(text) > MAX_PATH_CHARACTERS:
        raise ValueError("expected the absolute path of a file, as /run/secrets/openai")
    if _is_below(text, _SYSTEM_FOLDERS):
        raise ValueError("expected a file of an upstream's key: none under /proc, /sys and /dev")
    if _is_below(text, _POD_FOLDERS) or _is_below(text, _reserved_paths()):
        raise ValueError("expected a file of an upstream's key: this one is the deployment's own")
    return text


def read_secret_file(path: str) -> str:
    """The secret, without surrounding white space. Raises SecretFileError."""
    try:
        validate_path(path)
    except ValueError:
        raise SecretFileError("is no path of an upstream's secret") from None
    try:
        return _parse_secret(_read_content(path))
    except OSError as error:
        raise SecretFileError(f"cannot be read: {error.strerror}") from None


def _read_content(path: str) -> bytes:
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        _require_not_reserved(os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(descriptor)


def _require_not_reserved(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SecretFileError("is no regular file")
    # Compare the files themselves: a link has another path.
    if any(_is_same(found, path) for path in _reserved_paths()):
        raise SecretFileError("is the deployment's own")


def _parse_secret(content: bytes) -> str:
    if len(content) > MAX_FILE_BYTES:
        raise SecretFileError(f"has more than {MAX_FILE_BYTES} bytes")
    text = content.decode("latin-1").strip(" \t\r\n")
    if not _ONE_LINE.fullmatch(text):
        raise SecretFileError("does not hold one line of ASCII characters")
    return text


def _resolved(path: str) -> Path:
    return Path(os.path.realpath(path))


def _is_below(text: str, places: Iterable[str]) -> bool:
    """Whether the path is, or lies below, one of the places: as written, or with links resolved."""
    paths = (Path(os.path.normpath(text)), _resolved(text))
    return any(
        path.is_relative_to(place)
        for named in places
        for place in (named, _resolved(named))
        for path in paths
    )


def _reserved_paths() -> list[str]:
    """The files and folders that the deployment's own variables name, and the password file that libpq reads."""
    named = [
        path for name, path in os.environ.items() if len(path) > 1 and path[0] == "/" and is_reserved(name)
    ]
    return [*named, os.path.expanduser(_LIBPQ_PGPASS)]


def _is_same(found: os.stat_result, path: str) -> bool:
    try:
        return os.path.samestat(found, os.stat(path))
    except OSError:
        return False
