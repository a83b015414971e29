"""Variables that no host key may name: the deployment's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routing.secrets.reserved_env_vars import is_reserved

EXAMPLE = (Path(__file__).parents[4] / ".env.example").read_text()
# The vendors' keys, which the demo's catalog names.
OF_VENDORS = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
OWN = sorted({*re.findall(r"^#?([A-Z][A-Z0-9_]*)=", EXAMPLE, re.MULTILINE)} - OF_VENDORS)


@pytest.mark.parametrize("name", OWN)
def test_every_variable_of_the_example_is_the_deployments_own(name: str) -> None:
    assert is_reserved(name)
    assert is_reserved(f"{name}_FILE")
    assert is_reserved(name.lower())


@pytest.mark.parametrize("prefix", ["AWS_", "AZURE_", "GOOGLE_", "PG", "RELAY_", "DJANGO_", "CELERY_"])
def test_what_libraries_read_by_themselves_is_the_deployments_own(prefix: str) -> None:
    assert is_reserved(f"{prefix}ANYTHING_AT_ALL")
    assert is_reserved(f"{prefix}anything".lower())


@pytest.mark.parametrize(
    "name", ["RELAY_LIVE_CONCURRENCY", "RELAY_WEBHOOK_PRIVATE_NETWORKS", "PORT", "PUBLIC_URL"]
)
def test_settings_are_the_deployments_own(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize(
    "name", [*OF_VENDORS, "OPENAI_ON_AZURE_KEY", "GEMINI_API_KEY", "MY_AWS_KEY", "OPENAI_KEY_FILE"]
)
def test_an_upstreams_is_not(name: str) -> None:
    assert not is_reserved(name)
