"""Batches for tests, accepted the way a request is, without the HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db.models.functions import Now
from django.utils import timezone

from batches.models import Batch, BatchItem
from batches.publishing.publish import drain_publisher
from batches.submission.accept import accept_batch
from batches.submission.submission import Submission
from routing.credentials.credential import authenticate

if TYPE_CHECKING:
    from types import SimpleNamespace

    from batches.submission.idempotency import Idempotency
    from batches.submission.resends import KeylessRequest


def chat_body(text: str = "hello", model: str = "echo-1") -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": text}]}).encode()


def publish_all(batch: Batch) -> None:
    """Mark all items as published, as if the owner's window had room for them: whoever has an id may claim it."""
    BatchItem.objects.filter(batch=batch, published_at=None).update(published_at=Now())


def submit(catalog: SimpleNamespace, *bodies: bytes, **choices: Any) -> Batch:
    """A Relay batch of these bodies (one `chat_body` when there are none)."""
    replay_key: Idempotency | KeylessRequest | None = choices.pop("replay_key", None)
    defaults = {"dialect": "relay", "shape": "openai", "max_attempts": 1, "on_rate_limit": "fail"}
    chosen: dict[str, Any] = defaults | choices
    requests = bodies or (chat_body(),)
    submission = Submission(requests=requests, **chosen)
    accepted = accept_batch(
        submission,
        credential=authenticate(catalog.relay_key_value, now=timezone.now()),
        replay_key=replay_key,
        render=lambda batch: (202, str(batch.id).encode()),
    )
    # Else what a test does first would race with the publisher thread: only what was published can be claimed.
    drain_publisher()
    return Batch.objects.get(id=accepted.body.decode())
