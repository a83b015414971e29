"""Create users: people who may call, besides the service accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from routing.models import User

if TYPE_CHECKING:
    from routing.models import Policy, Project


class UserCreationError(Exception):
    """The name is taken or invalid. The message is one sentence for the operator."""


def create_user(*, name: str, project: Project, policy: Policy) -> User:
    """Create a user without a usable password, which an admin sets. Raises UserCreationError."""
    user = User(username=name, project=project, policy=policy)
    user.set_unusable_password()
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise UserCreationError(f"user {name!r}: {' '.join(error.messages)}") from error
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        raise UserCreationError(f"user {name!r} exists already") from error
    return user
