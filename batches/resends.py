"""A create that an SDK sends again, because it heard no answer, gets the first one's and makes no second batch.

The official SDKs send no Idempotency-Key; they say in `x-stainless-retry-count` how often they have sent the request
before (https://github.com/openai/openai-python, https://github.com/anthropics/anthropic-sdk-python: `_base_client.py`).

Every send holds a lock of its owner, path, query and body until its transaction ends: first sends share it, so that
they never wait for one another; a resend holds it alone, and so waits for all that are in progress.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from batches.idempotency import AnsweredEarlier
from batches.models.surroundings import RESEND_MINUTES
from batches.patience import AWAY
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from batches.models import Owner

logger = logging.getLogger(__name__)

COUNT_HEADER = "x-stainless-retry-count"
# SDKs try twice unless they are told otherwise. Within ten minutes nobody comes to a thousand.
_COUNT = re.compile("[1-9][0-9]{0,2}", re.ASCII)

_LOCK_ALONE = "SELECT pg_advisory_xact_lock(%(lock)s)"
# By the database's clock as of the arrival: what the lock is waited for does not count.
_ARRIVED_AT = "statement_timestamp() - make_interval(secs => %(age)s)"
_TAKE = f"""
UPDATE batches_keylesscreate SET resends = %(count)s
WHERE id = (SELECT id FROM batches_keylesscreate WHERE digest = %(digest)s ORDER BY arrived_at DESC, id DESC LIMIT 1)
    AND status > 0 AND resends < %(count)s
    AND arrived_at >= clock_timestamp() - interval '{RESEND_MINUTES} minutes'
RETURNING status, answer
"""
_ADD = f"""
INSERT INTO batches_keylesscreate (id, owner_id, digest, resends, status, answer, arrived_at)
SELECT %(id)s, %(owner)s, %(digest)s, %(count)s, %(status)s, %(answer)s, {_ARRIVED_AT}
FROM (SELECT pg_advisory_xact_lock_shared(%(lock)s)) AS locked
"""
# Not where the send's own create is there: its commit went through, and only its answer did not.
_ADD_REFUSED = f"""
INSERT INTO batches_keylesscreate (id, owner_id, digest, resends, status, answer, arrived_at)
SELECT %(id)s, id, %(digest)s, %(count)s, 0, ''::bytea, {_ARRIVED_AT} FROM batches_owner WHERE name = %(owner_name)s
ON CONFLICT (id) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Send:
    """A create without Idempotency-Key, as it has just arrived.

    `digest`: SHA-256 of whose it is and what was asked for. `count`: how often the SDK sent it before; 0 = first send.
    """

    owner_name: str
    digest: bytes
    count: int
    id: uuid.UUID = field(default_factory=uuid7)
    arrived: float = field(default_factory=time.monotonic)

    @property
    def values(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "digest": self.digest,
            "count": self.count,
            "lock": int.from_bytes(self.digest[:8], "big", signed=True),
            "age": time.monotonic() - self.arrived,
            "owner_name": self.owner_name,
        }


def resend_count(headers: Mapping[str, str]) -> int:
    """What no SDK says counts as a first send."""
    said = headers.get(COUNT_HEADER, "")
    return int(said) if _COUNT.fullmatch(said) else 0


def digest_of(owner_name: str, *, path: str, query: str, body: memoryview) -> bytes:
    """Covers the decoded body, which may be compressed differently, and no slash at the end of the path."""
    digest = hashlib.sha256(
        "\0".join((owner_name, path.rstrip("/"), query, "")).encode(errors="surrogatepass")
    )
    digest.update(body)
    return digest.digest()


def raise_if_resent(send: Send) -> None:
    """Raises AnsweredEarlier when this is a resend of the newest create of its kind; waits for one in progress."""
    if not send.count:
        return
    with transaction.atomic():
        earlier = _taken(send)
    if earlier:
        raise earlier


def claim_send(owner: Owner, send: Send, *, status: int, body: bytes) -> AnsweredEarlier | None:
    """Stores the answer in the caller's transaction; or gives the answer of which this is a resend.

    The latter counts as given when the transaction is committed, so that is to be done.
    """
    if send.count and (earlier := _taken(send)):
        return earlier
    with connection.cursor() as cursor:
        cursor.execute(_ADD, send.values | {"owner": owner.id, "status": status, "answer": body})
    return None


def note_refusal(send: Send) -> None:
    """A resend of what was refused is no resend of an earlier create. Raises nothing where the database is away."""
    if connection.errors_occurred:  # it may be broken, and the next one works
        connection.close()
    try:
        with connection.cursor() as cursor:
            cursor.execute(_ADD_REFUSED, send.values)
    except AWAY as error:
        logger.warning("a refused create could not be noted: %s", type(error).__name__)
        connection.close()


def _taken(send: Send) -> AnsweredEarlier | None:
    """The answer of the newest create, unless a resend of the same count had it. Alone until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_ALONE, send.values)
        cursor.execute(_TAKE, send.values)
        row = cursor.fetchone()
    return AnsweredEarlier(status=row[0], body=bytes(row[1])) if row else None
