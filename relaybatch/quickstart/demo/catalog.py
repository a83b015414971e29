"""Write the demo's catalog: the example files with the current address of the echo upstream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ECHO_HOST = "echo"
DEMO_POLICY = "demo"
PROVIDERS_BY_VARIABLE = {"OPENAI_API_KEY": "openai.yaml", "ANTHROPIC_API_KEY": "anthropic.yaml"}


def write_catalog(path: Path, *, examples: Path, echo_url: str, environment: Mapping[str, str]) -> None:
    """Write JSON, which is YAML too. Hosts of a real provider are added if its API key is in the environment."""
    catalog = _read(examples / "catalog.yaml")
    for host in catalog["hosts"]:
        if host["name"] == ECHO_HOST:
            host["base_url"] = echo_url
    for variable, name in PROVIDERS_BY_VARIABLE.items():
        if environment.get(variable):
            _add(catalog, _read(examples / "providers" / name))
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(catalog, indent=2))


def _add(catalog: dict[str, Any], more: dict[str, Any]) -> None:
    for kind, rows in more.items():
        catalog.setdefault(kind, []).extend(rows)
    policy = next(row for row in catalog["policies"] if row["name"] == DEMO_POLICY)
    policy["host_keys"].extend(row["name"] for row in more["host_keys"])


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content
