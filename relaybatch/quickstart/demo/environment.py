"""What the demo's processes read from their environment; whatever the caller has set wins."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relaybatch.server.bind_addresses import THIS_MACHINE, binds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaybatch.quickstart.demo.demo_secrets import KeptSecrets


def demo_environment(given: Mapping[str, str], *, home: Path, port: int, kept: KeptSecrets) -> dict[str, str]:
    """Without the servers' addresses. An empty variable counts as unset, and `<NAME>_FILE` as `<NAME>`."""
    programs = str(Path(sys.executable).parent)
    defaults = {
        "SECRET_KEY": kept.secret_key,
        "RELAY_MASTER_KEY": kept.master_key,
        "ALLOWED_HOSTS": "127.0.0.1,localhost,[::1]",
        "GUNICORN_CMD_ARGS": " ".join(f"--bind={place}" for place in binds(THIS_MACHINE, port=port)),
        "RELAY_BATCH_PAYLOAD_DIR": str(home / "payloads"),
    }
    missing = {
        name: value for name, value in defaults.items() if not (given.get(name) or given.get(f"{name}_FILE"))
    }
    paths = {"PATH": f"{programs}{os.pathsep}{given.get('PATH') or os.defpath}", "PORT": str(port)}
    return {**given, **missing, **paths}
