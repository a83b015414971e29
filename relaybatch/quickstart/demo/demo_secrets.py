"""The demo's secrets, created once and stored in its home: a second start must decrypt what the first one stored."""

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
    """Empty until it was created."""


def load_secrets(home: Path) -> DemoSecrets:
    """Read the secrets of this home, or create them."""
    path = _path(home)
    if path.exists():
        return DemoSecrets(**json.loads(path.read_text()))
    created = DemoSecrets(
        secret_key=secrets.token_urlsafe(48),
        master_key=base64.b64encode(secrets.token_bytes(32)).decode(),
        admin_password=secrets.token_urlsafe(12),
    )
    _write(path, created)
    return created


def save_relay_key(home: Path, *, relay_key: str) -> None:
    _write(_path(home), replace(load_secrets(home), relay_key=relay_key))


def _path(home: Path) -> Path:
    return home / "secrets.json"


def _write(path: Path, content: DemoSecrets) -> None:
    """Replace the file atomically; only the owner can read it."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(content), file)
    new.replace(path)
