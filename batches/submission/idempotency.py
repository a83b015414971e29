"""Idempotency-Key: the same key of the same owner within 24 h gets the stored response and makes no second batch."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from batches.models import IdempotencyKey
from batches.models.idempotency_key import IDEMPOTENCY_HOURS
from relaybatch.db.pipeline import execute_prepared
from relaybatch.http.errors import Conflict, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

_VALID_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_STORE_RESPONSE: LiteralString = f"""
INSERT INTO batches_idempotencykey (owner_id, key_hash, body_hash, status, answer, created_at)
VALUES (%s, %s, %s, %s, %s, clock_timestamp())
ON CONFLICT (owner_id, key_hash) DO UPDATE SET body_hash = EXCLUDED.body_hash, status = EXCLUDED.status,
    answer = EXCLUDED.answer, created_at = EXCLUDED.created_at
WHERE batches_idempotencykey.created_at < clock_timestamp() - interval '{IDEMPOTENCY_HOURS} hours'
RETURNING owner_id
"""


@dataclass(frozen=True, slots=True)
class Idempotency:
    """SHA-256 digests of the header's value, and of the request (path and decoded body)."""

    key_hash: bytes
    body_hash: bytes


def parse_idempotency_key(headers: Mapping[str, str]) -> str | None:
    """Return the key, None without one. Raises InvalidRequest."""
    key = headers.get("Idempotency-Key")
    if key is not None and not _VALID_KEY.fullmatch(key):
        raise InvalidRequest(
            "Idempotency-Key must be 1 to 255 visible ASCII characters.", param="Idempotency-Key"
        )
    return key


def request_idempotency(key: str, *, path: str, body: bytes | memoryview) -> Idempotency:
    """Hash path (without a slash at its end) and decoded body: a repeated request may be compressed differently."""
    body_hash = hashlib.sha256(path.rstrip("/").encode())
    body_hash.update(b"\0")
    body_hash.update(body)
    return Idempotency(key_hash=hashlib.sha256(key.encode("ascii")).digest(), body_hash=body_hash.digest())


class ReplayedResponse(Exception):  # noqa: N818 -- not an error: the caller gets the response that it carries
    """A request that came before: it gets the response of then."""

    def __init__(self, *, status: int, body: bytes) -> None:
        super().__init__("response replayed")
        self.status = status
        self.body = body


def raise_if_replayed(owner_name: str, idempotency: Idempotency) -> None:
    """Raise ReplayedResponse when the key was used before, or Conflict when it was used with another request."""
    unexpired = IdempotencyKey.objects.unexpired()
    if row := unexpired.filter(owner__name=owner_name, key_hash=idempotency.key_hash).first():
        raise _replay(row, idempotency)


def store_response_statement(
    owner_id: int, idempotency: Idempotency, *, status: int, body: bytes
) -> tuple[LiteralString, list[Any]]:
    """Return the statement that stores the response; it returns no row if the key was used before.

    Of two creates at once, the second waits in it for the first one's commit (or roll-back, and then goes on).
    """
    return _STORE_RESPONSE, [owner_id, idempotency.key_hash, idempotency.body_hash, status, body]


def store_response(owner_id: int, idempotency: Idempotency, *, status: int, body: bytes) -> None:
    """Store the response in the caller's transaction, or raise as `raise_if_replayed` does."""
    if not execute_prepared(*store_response_statement(owner_id, idempotency, status=status, body=body)):
        raise _replay(
            IdempotencyKey.objects.get(owner_id=owner_id, key_hash=idempotency.key_hash), idempotency
        )


def _replay(row: IdempotencyKey, idempotency: Idempotency) -> ReplayedResponse:
    if bytes(row.body_hash) != idempotency.body_hash:
        raise Conflict(
            "This Idempotency-Key was used with another request (path and body) within the last 24 hours; "
            "send the same request, or another key.",
            code="idempotency_conflict",
        )
    return ReplayedResponse(status=row.status, body=bytes(row.answer))
