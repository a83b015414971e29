"""A user who calls with an inference token, on a catalog of `tests.support.rows.catalog`."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

from django.utils import timezone

from routing.credentials.tokens import mint_token
from routing.models import User


def make_token_caller(rows: SimpleNamespace, *, ttl_seconds: int = 3_600) -> SimpleNamespace:
    """`user`, `minted`; `relay_key_value` and `headers` are the token's, so that it submits as a key would."""
    caller = SimpleNamespace(**vars(rows))
    caller.user = User.objects.create_user(
        f"user{uuid.uuid4().hex[:8]}", project=rows.project, policy=rows.policy
    )
    return with_token(caller, ttl_seconds=ttl_seconds)


def with_token(caller: SimpleNamespace, *, ttl_seconds: int = 3_600) -> SimpleNamespace:
    """The same user with one more token."""
    caller = SimpleNamespace(**vars(caller))
    caller.minted = mint_token(caller.user, project=None, ttl_seconds=ttl_seconds, now=timezone.now())
    caller.relay_key_value = caller.minted.token
    caller.headers = {"Authorization": f"Bearer {caller.minted.token}"}
    return caller
