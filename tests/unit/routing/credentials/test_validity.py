from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from routing.credentials.validity import KeyState, TokenState

NOW = datetime(2026, 11, 3, 12, tzinfo=UTC)
PAST, FUTURE = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)
VALID_KEY = KeyState(
    enabled=True, expires_at=None, revoked_at=None, key_hash="new", previous_key_hash="old", grace_until=None
)
VALID_TOKEN = TokenState(expires_at=FUTURE, revoked_at=None, version=2, current_version=2)


@pytest.mark.parametrize(
    ("changes", "key_hash", "reason"),
    [
        ({}, "new", ""),
        ({"expires_at": FUTURE}, "new", ""),
        ({"expires_at": NOW}, "new", "expired"),
        ({"expires_at": PAST}, "new", "expired"),
        ({"enabled": False}, "new", "disabled"),
        ({"revoked_at": PAST}, "new", "revoked"),
        ({"revoked_at": PAST, "enabled": False, "expires_at": PAST}, "new", "revoked"),
        ({"grace_until": FUTURE}, "old", ""),
        ({"grace_until": NOW}, "old", "rotated"),
        ({}, "old", "rotated"),
        ({"grace_until": FUTURE}, "older", "rotated"),
        ({"grace_until": FUTURE, "enabled": False}, "old", "disabled"),
        ({"previous_key_hash": "", "grace_until": FUTURE}, "older", "rotated"),
    ],
)
def test_the_reason_why_a_key_is_invalid(changes: dict[str, Any], key_hash: str, reason: str) -> None:
    assert replace(VALID_KEY, **changes).invalid_reason(key_hash=key_hash, now=NOW) == reason


def test_a_keys_hashes_stay_out_of_its_repr() -> None:
    assert "new" not in repr(VALID_KEY)
    assert "old" not in repr(VALID_KEY)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"expires_at": NOW}, "expired"),
        ({"expires_at": PAST}, "expired"),
        ({"revoked_at": PAST}, "revoked"),
        ({"current_version": 3}, "revoked"),
        ({"current_version": 3, "expires_at": PAST}, "revoked"),
    ],
)
def test_the_reason_why_a_token_is_invalid(changes: dict[str, Any], reason: str) -> None:
    assert replace(VALID_TOKEN, **changes).invalid_reason(now=NOW) == reason
