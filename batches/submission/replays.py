"""Creates that come again, under their Idempotency-Key or resent by an SDK: they get the response of the first time."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from batches.submission.idempotency import (
    Idempotency,
    parse_idempotency_key,
    raise_if_replayed,
    request_idempotency,
    store_response,
)
from batches.submission.resends import (
    KeylessRequest,
    deduplicate,
    parse_resend_count,
    record_create,
    request_digest,
)
from routing.credentials.credential import check_may_create

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from routing.credentials.credential import Credential

ReplayKey: TypeAlias = Idempotency | KeylessRequest


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """What the request line and the headers of a create say. `key`: its Idempotency-Key."""

    path: str
    query: str
    key: str | None
    resend_count: int

    @classmethod
    def of(cls, request: HttpRequest) -> CreateRequest:
        """Raises InvalidRequest for an Idempotency-Key that is none."""
        return cls(
            path=request.path_info,
            query=request.META.get("QUERY_STRING", ""),
            key=parse_idempotency_key(request.headers),
            resend_count=parse_resend_count(request.headers),
        )

    @property
    def may_be_replayed(self) -> bool:
        return self.key is not None or self.resend_count > 0


def check_before_body(create: CreateRequest, credential: Credential) -> None:
    """Raise Forbidden for a credential that may not create, before the body is read: what may have come before is
    answered in any case."""
    if not create.may_be_replayed:
        check_may_create(credential)


@contextlib.contextmanager
def unless_replayed(
    create: CreateRequest, credential: Credential, body: bytes | memoryview
) -> Iterator[ReplayKey]:
    """Run the create within, which stores its response under the key that this yields.

    `body`: what makes two requests the same. Raises ReplayedResponse for a request that came before, whatever has
    changed since; Conflict for its Idempotency-Key with another body; Forbidden.
    """
    if create.key is None:
        owner = credential.owner
        digest = request_digest(owner, path=create.path, query=create.query, body=body)
        keyless = KeylessRequest(owner_name=owner, digest=digest, resend_count=create.resend_count)
        with deduplicate(keyless):
            check_may_create(credential)
            yield keyless
    else:
        idempotency = request_idempotency(create.key, path=create.path, body=body)
        raise_if_replayed(credential.owner, idempotency)
        check_may_create(credential)
        yield idempotency


def store_replay(owner_id: int, key: ReplayKey | None, *, status: int, body: bytes) -> None:
    """Store the response in the caller's transaction. Raises ReplayedResponse or Conflict: another came before."""
    match key:
        case Idempotency():
            store_response(owner_id, key, status=status, body=body)
        case KeylessRequest():
            record_create(owner_id, key, status=status, body=body)
