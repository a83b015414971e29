"""The secrets of a demo, made once and kept in its home, so that a second start can read what the first one stored."""

from __future__ import annotations

import base64
import json
import os
import secrets
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, repr=False)
class DemoSecrets:
    secret_key: str
    master_key: str
    admin_password: str
    relay_key: str = ""
    """Empty until one was created."""


def load_secrets(home: Path) -> DemoSecrets:
    path = _path(home)
    if path.exists():
        return DemoSecrets(**json.loads(path.read_text()))
    made = DemoSecrets(
        secret_key=secrets.token_urlsafe(48),
        master_key=base64.b64encode(secrets.token_bytes(32)).decode(),
        admin_password=secrets.token_urlsafe(12),
    )
    _write(path, made)
    return made


def save_relay_key(home: Path, *, relay_key: str) -> None:
    _write(_path(home), replace(load_secrets(home), relay_key=relay_key))


def _path(home: Path) -> Path:
    return home / "secrets.json"


def _write(path: Path, content: DemoSecrets) -> None:
    """Whole or not at all, and never readable by others."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(content), file)
    new.replace(path)
