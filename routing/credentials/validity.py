"""Whether a credential is valid, and the reason when it is not."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class KeyState:
    """The columns of a relay key that decide whether it is valid."""

    enabled: bool
    expires_at: datetime | None
    revoked_at: datetime | None
    key_hash: str = field(repr=False)
    previous_key_hash: str = field(repr=False)
    grace_until: datetime | None

    def invalid_reason(self, *, key_hash: str, now: datetime) -> str:
        """Why the value with this hash is invalid now: `revoked`, `disabled`, `expired` or `rotated`; empty: valid."""
        if self.revoked_at is not None:
            return "revoked"
        if not self.enabled:
            return "disabled"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "" if self._matches(key_hash=key_hash, now=now) else "rotated"

    def _matches(self, *, key_hash: str, now: datetime) -> bool:
        # Constant time: how long the comparison takes reveals nothing of the stored hash.
        if hmac.compare_digest(key_hash, self.key_hash):
            return True
        in_grace = self.grace_until is not None and now < self.grace_until
        return hmac.compare_digest(key_hash, self.previous_key_hash) and in_grace


@dataclass(frozen=True, slots=True)
class TokenState:
    """The columns that decide whether an inference token is valid.

    `version`: the token's own. `current_version`: its user's `token_version` now.
    """

    expires_at: datetime
    revoked_at: datetime | None
    version: int
    current_version: int

    def invalid_reason(self, *, now: datetime) -> str:
        """Why the token is invalid now: `revoked` or `expired`; empty: valid."""
        if self.revoked_at is not None or self.version != self.current_version:
            return "revoked"
        return "expired" if self.expires_at <= now else ""
