"""Environment variables of the demo's processes; what the user has set takes precedence."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relaybatch.server.bind_addresses import LOOPBACK, usable_binds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaybatch.quickstart.demo.demo_secrets import DemoSecrets


def demo_environment(
    environment: Mapping[str, str], *, home: Path, port: int, secrets: DemoSecrets
) -> dict[str, str]:
    """Add the demo's defaults, without the servers' URLs. An empty variable is unset; `<NAME>_FILE` sets `<NAME>`."""
    programs = str(Path(sys.executable).parent)
    defaults = {
        "SECRET_KEY": secrets.secret_key,
        "RELAY_MASTER_KEY": secrets.master_key,
        "ALLOWED_HOSTS": "127.0.0.1,localhost,[::1]",
        "GUNICORN_CMD_ARGS": " ".join(f"--bind={place}" for place in usable_binds(LOOPBACK, port=port)),
        "RELAY_BATCH_PAYLOAD_DIR": str(home / "payloads"),
    }
    missing = {
        name: value
        for name, value in defaults.items()
        if not (environment.get(name) or environment.get(f"{name}_FILE"))
    }
    paths = {"PATH": f"{programs}{os.pathsep}{environment.get('PATH') or os.defpath}", "PORT": str(port)}
    return {**environment, **missing, **paths}
