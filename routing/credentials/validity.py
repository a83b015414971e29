"""What decides whether a credential works, and by which fault it does not."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class KeyState:
    """What decides whether a relay key works, read from its row."""

    enabled: bool
    expires_at: datetime | None
    revoked_at: datetime | None
    key_hash: str = field(repr=False)
    previous_key_hash: str = field(repr=False)
    grace_until: datetime | None

    def invalid_reason(self, *, key_hash: str, now: datetime) -> str:
        """Why the value with this hash does not work now: `revoked`, `disabled`, `expired`, `rotated`, or empty."""
        if self.revoked_at is not None:
            return "revoked"
        if not self.enabled:
            return "disabled"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "" if self._matches(key_hash=key_hash, now=now) else "rotated"

    def _matches(self, *, key_hash: str, now: datetime) -> bool:
        if hmac.compare_digest(key_hash, self.key_hash):
            return True
        in_grace = self.grace_until is not None and now < self.grace_until
        return hmac.compare_digest(key_hash, self.previous_key_hash) and in_grace


@dataclass(frozen=True, slots=True)
class TokenState:
    """What decides whether an inference token works. `version`: its own; `current_version`: its user's now."""

    expires_at: datetime
    revoked_at: datetime | None
    version: int
    current_version: int

    def invalid_reason(self, *, now: datetime) -> str:
        """Why the token does not work now: `revoked`, `expired`, or empty."""
        if self.revoked_at is not None or self.version != self.current_version:
            return "revoked"
        return "expired" if self.expires_at <= now else ""
