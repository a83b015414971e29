"""Resends: a create that an SDK sends again gets the first one's response, and makes no second batch.

The official SDKs send no Idempotency-Key; they say in `x-stainless-retry-count` how often they have sent the request
before (https://github.com/openai/openai-python, https://github.com/anthropics/anthropic-sdk-python: `_base_client.py`).

Every such request holds an advisory lock of its owner, path, query and body from its arrival (of an upload: from the
moment when all of it has come) to its response: first
sends share it, so that they do not wait for one another; a resend takes it exclusively, and so waits for all that are
in progress. It is a lock of the session, not of a transaction: requests are read and stored outside of one.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, LiteralString

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

from batches.models.keyless_create import RESEND_MINUTES
from batches.submission.idempotency import ReplayedResponse
from relaybatch.db.connection import keep_connection
from relaybatch.db.outage import DATABASE_UNAVAILABLE
from relaybatch.db.pipeline import execute_prepared
from relaybatch.http.errors import Unavailable
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Mapping

logger = logging.getLogger(__name__)

RESEND_COUNT_HEADER = "x-stainless-retry-count"
LOCK_TIMEOUT_SECONDS = 60
# SDKs resend twice by default. Within eleven minutes none comes to a thousand.
_VALID_COUNT = re.compile("[1-9][0-9]{0,2}", re.ASCII)

# The time-out is local to the statement: outside of a transaction, it does not outlast it.
_WAIT: LiteralString = "SELECT set_config('lock_timeout', %(wait)s, true),"
_SHARED: tuple[LiteralString, LiteralString] = (
    f"{_WAIT} pg_advisory_lock_shared(%(lock)s)",
    "SELECT pg_advisory_unlock_shared(%(lock)s)",
)
_EXCLUSIVE: tuple[LiteralString, LiteralString] = (
    f"{_WAIT} pg_advisory_lock(%(lock)s)",
    "SELECT pg_advisory_unlock(%(lock)s)",
)
# The arrival by the database's clock, without the time spent waiting for the lock.
_ARRIVED_AT: LiteralString = "statement_timestamp() - make_interval(secs => %(age)s)"
_TAKE_RESPONSE = f"""
UPDATE batches_keylesscreate SET resends = %(count)s
WHERE id = (SELECT id FROM batches_keylesscreate WHERE digest = %(digest)s ORDER BY arrived_at DESC, id DESC LIMIT 1)
    AND status > 0 AND resends < %(count)s
    AND arrived_at >= clock_timestamp() - interval '{RESEND_MINUTES} minutes'
RETURNING status, answer
"""
_RECORD_CREATE: LiteralString = f"""
INSERT INTO batches_keylesscreate (id, owner_id, digest, resends, status, answer, arrived_at)
VALUES (%(id)s, %(owner)s, %(digest)s, %(count)s, %(status)s, %(answer)s, {_ARRIVED_AT})
RETURNING id
"""
# Not where this request's own create exists: its commit succeeded, and only its response failed.
_RECORD_REJECTION = f"""
INSERT INTO batches_keylesscreate (id, owner_id, digest, resends, status, answer, arrived_at)
SELECT %(id)s, id, %(digest)s, %(count)s, 0, ''::bytea, {_ARRIVED_AT} FROM batches_owner WHERE name = %(owner_name)s
ON CONFLICT (id) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class KeylessRequest:
    """A create without Idempotency-Key, as it has just arrived.

    `digest`: SHA-256 of owner and request. `resend_count`: how often the SDK sent it before; 0 = first send.
    """

    owner_name: str
    digest: bytes
    resend_count: int
    id: uuid.UUID = field(default_factory=uuid7)
    arrived_monotonic: float = field(default_factory=time.monotonic)

    @property
    def values(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "digest": self.digest,
            "count": self.resend_count,
            "lock": int.from_bytes(self.digest[:8], "big", signed=True),
            "age": time.monotonic() - self.arrived_monotonic,
            "owner_name": self.owner_name,
        }


def parse_resend_count(headers: Mapping[str, str]) -> int:
    """Parse `x-stainless-retry-count`. Anything that no SDK sends counts as a first send."""
    value = headers.get(RESEND_COUNT_HEADER, "")
    return int(value) if _VALID_COUNT.fullmatch(value) else 0


def request_digest(owner_name: str, *, path: str, query: str, body: bytes | memoryview) -> bytes:
    """Hash the decoded body, which may be compressed differently, and the path without a slash at its end."""
    digest = hashlib.sha256(
        "\0".join((owner_name, path.rstrip("/"), query, "")).encode(errors="surrogatepass")
    )
    digest.update(body)
    return digest.digest()


@contextlib.contextmanager
def deduplicate(request: KeylessRequest) -> Iterator[None]:
    """Run the create within, under the request's lock; a rejection of it is recorded.

    For a resend, wait until no other request of its digest is in progress, then raise ReplayedResponse if it repeats
    the newest create; Unavailable if the wait takes longer than LOCK_TIMEOUT_SECONDS.
    """
    with keep_connection(), _hold_lock(request):
        if request.resend_count:
            _raise_if_replayed(request)
        try:
            yield
        except Exception:
            _record_rejection(request)
            raise


def record_create_statement(
    owner_id: int, request: KeylessRequest, *, status: int, body: bytes
) -> tuple[LiteralString, dict[str, Any]]:
    """Return the statement that stores the response, for the transaction that creates the batch. It returns a row."""
    return _RECORD_CREATE, request.values | {"owner": owner_id, "status": status, "answer": body}


def record_create(owner_id: int, request: KeylessRequest, *, status: int, body: bytes) -> None:
    """Store the response, in the transaction that creates the batch."""
    execute_prepared(*record_create_statement(owner_id, request, status=status, body=body))


@contextlib.contextmanager
def _hold_lock(request: KeylessRequest) -> Iterator[None]:
    lock, unlock = _EXCLUSIVE if request.resend_count else _SHARED
    try:
        execute_prepared(lock, request.values | {"wait": f"{LOCK_TIMEOUT_SECONDS}s"})
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise Unavailable(
                "An earlier send of this request is still in progress: send it again later."
            ) from error
        raise
    try:
        yield
    finally:
        _unlock(request, unlock)


def _unlock(request: KeylessRequest, statement: LiteralString) -> None:
    try:
        execute_prepared(statement, request.values)
    except DATABASE_UNAVAILABLE:
        # The lock ends with the session, which may be broken and must not be used again.
        connection.close()


def _raise_if_replayed(request: KeylessRequest) -> None:
    """Take the response of the newest create, unless a resend of the same count got it already."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_RESPONSE, request.values)
        row = cursor.fetchone()
    if row:
        raise ReplayedResponse(status=row[0], body=bytes(row[1]))


def _record_rejection(request: KeylessRequest) -> None:
    """Record that the create was rejected: a resend of it is no resend of an earlier create. Raises nothing while the
    database is unavailable."""
    if connection.errors_occurred and not connection.is_usable():  # Django then opens a new one
        connection.close()
    try:
        with connection.cursor() as cursor:
            cursor.execute(_RECORD_REJECTION, request.values)
    except DATABASE_UNAVAILABLE as error:
        logger.warning("rejected create not recorded", extra={"reason": type(error).__name__})
        connection.close()
