"""Secrets in files of the machine: small, of one line, read again whenever the catalog is.

Whoever edits the catalog chooses the host that a secret is sent to, so the deployment's own files are refused, and
those of the system and of the container. No message holds what a file says.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from routing.secrets.reserved_env_vars import is_own_name

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_BYTES = 8192
MAX_PATH_CHARACTERS = 1000

_OF_THE_SYSTEM = ("/proc", "/sys", "/dev")
# The pod's own token, which opens the cluster: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
_OF_THE_POD = ("/run/secrets/kubernetes.io", "/var/run/secrets/kubernetes.io")
# https://www.postgresql.org/docs/current/libpq-pgpass.html
_PASSWORDS_OF_LIBPQ = "~/.pgpass"
_ONE_LINE = re.compile(r"[\t\x20-\x7e]+")
# A FIFO without a writer would keep whoever opens it waiting.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FileUnusable(Exception):  # noqa: N818
    """In a few words, why nothing can be read from it."""


def checked_path(text: str) -> str:
    """Of a file that need not be there: the workers have it. Raises ValueError."""
    if not text.startswith("/") or not text.isprintable() or len(text) > MAX_PATH_CHARACTERS:
        raise ValueError("expected the absolute path of a file, as /run/secrets/openai")
    if _is_below(text, _OF_THE_SYSTEM):
        raise ValueError("expected a file of an upstream's key: none under /proc, /sys and /dev")
    if _is_below(text, _OF_THE_POD) or _is_below(text, _own_paths()):
        raise ValueError("expected a file of an upstream's key: this one is the deployment's own")
    return text


def read_secret_file(path: str) -> str:
    """Without white space at its ends. Raises FileUnusable."""
    try:
        checked_path(path)
    except ValueError:
        raise FileUnusable("is no path of an upstream's secret") from None
    try:
        return _secret_in(_content(path))
    except OSError as error:
        raise FileUnusable(f"cannot be read: {error.strerror}") from None


def _content(path: str) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        _require_upstreams(os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)


def _require_upstreams(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise FileUnusable("is no regular file")
    # By the file itself: another link to it has another path.
    if any(_is_same(found, path) for path in _own_paths()):
        raise FileUnusable("is the deployment's own")


def _secret_in(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise FileUnusable(f"has more than {MAX_BYTES} bytes")
    text = content.decode("latin-1").strip(" \t\r\n")
    if not _ONE_LINE.fullmatch(text):
        raise FileUnusable("does not hold one line of ASCII characters")
    return text


def _real(path: str) -> Path:
    return Path(os.path.realpath(path))


def _is_below(text: str, places: Iterable[str]) -> bool:
    """Or one of them, as it is written or wherever links lead."""
    paths = (Path(os.path.normpath(text)), _real(text))
    return any(
        path.is_relative_to(place) for named in places for place in (named, _real(named)) for path in paths
    )


def _own_paths() -> list[str]:
    """The files and folders that this deployment's own variables name, and what libpq reads unasked."""
    named = [
        path for name, path in os.environ.items() if len(path) > 1 and path[0] == "/" and is_own_name(name)
    ]
    return [*named, os.path.expanduser(_PASSWORDS_OF_LIBPQ)]


def _is_same(found: os.stat_result, path: str) -> bool:
    try:
        return os.path.samestat(found, os.stat(path))
    except OSError:
        return False
