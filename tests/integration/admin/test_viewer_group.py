"""The group of those who may look."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from batches.viewer_group import GROUP_NAME, VIEWABLE_MODELS

pytestmark = pytest.mark.django_db


def granted() -> set[str]:
    return set(Group.objects.get(name=GROUP_NAME).permissions.values_list("codename", flat=True))


def test_viewers_may_look_at_all_that_is_named_and_do_nothing_else() -> None:
    assert granted() == {f"view_{model}" for models in VIEWABLE_MODELS.values() for model in models}
    assert not granted() & {"view_payload", "view_user", "view_group", "change_batch"}


def test_what_an_operator_makes_of_the_group_stays() -> None:
    group = Group.objects.get(name=GROUP_NAME)
    group.permissions.set(Permission.objects.filter(codename="view_batch"))
    call_command("migrate", verbosity=0)
    assert granted() == {"view_batch"}
