"""What an operator's first commands would complain about."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, stdout=io.StringIO())


@pytest.mark.django_db
def test_the_deployment_check_has_nothing_to_say() -> None:
    said = io.StringIO()
    call_command("check", deploy=True, fail_level="WARNING", stdout=said, stderr=said)
    assert said.getvalue().startswith("System check identified no issues")
