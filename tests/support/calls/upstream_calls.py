"""Calls for tests of `routing.upstream.send`: a body, a caller from a catalog, an abort handle, and a deadline."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING

from routing.calls.call import Call, Caller
from routing.transport.abort_handle import AbortHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import SimpleNamespace

BODIES = {
    "openai": b'{"model":"echo-1","messages":[{"role":"user","content":"hi"}]}',
    "openai_responses": b'{"model":"echo-1-responses","input":"hi"}',
    "openai_embeddings": b'{"model":"echo-1-embeddings","input":["hi","you"]}',
    "anthropic": b'{"model":"echo-1-messages","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
}


def caller_of(catalog: SimpleNamespace) -> Caller:
    """Who calls with the relay key of the catalog (tests/support/rows/catalog.py)."""
    return Caller(
        owner=catalog.relay_key.key_hash,
        credential_kind="key",
        credential_id=str(catalog.relay_key.id),
        principal_kind="serviceaccount",
        principal_id=str(catalog.service_account.id),
        policy_id=catalog.policy.id,
        project_id=catalog.project.id,
        team_id=catalog.team.id,
    )


def call_of(
    catalog: SimpleNamespace,
    *,
    adapter: str = "openai",
    body: bytes | None = None,
    seconds: float = 20.0,
    headers: Mapping[str, str] | None = None,
) -> Call:
    return Call(
        caller=caller_of(catalog),
        adapter=adapter,
        body=BODIES[adapter] if body is None else body,
        idempotency_key=str(uuid.uuid4()),
        timeout_seconds=seconds,
        abort_handle=AbortHandle(),
        headers=headers or {},
    )


class Aborter:
    """Aborts a call from another thread once the condition holds. `at`: when it did (monotonic)."""

    def __init__(self, abort_handle: AbortHandle, *, reason: str, when: Callable[[], object]) -> None:
        self.at = 0.0
        self._abort_handle = abort_handle
        self._reason = reason
        self._when = when
        self._thread = threading.Thread(target=self._abort, daemon=True)
        self._thread.start()

    def _abort(self) -> None:
        self._when()
        self.at = time.monotonic()
        self._abort_handle.abort(self._reason)

    def join(self) -> None:
        self._thread.join(20)
