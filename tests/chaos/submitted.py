"""Build submissions of every dialect, each item of which has unique bytes."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.chaos.deployment.catalog import MODELS

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

DIALECTS = ("relay", "chat", "messages", "openai")
PATHS = dict.fromkeys(DIALECTS, "/v1/batches") | {"messages": "/v1/messages/batches"}
CREATED = dict.fromkeys(DIALECTS, 200) | {"relay": 202}
ENDPOINTS = {"openai": "/v1/chat/completions", "openai_responses": "/v1/responses"}
_BOUNDARY = "chaos"
SIZES = (1, 1, 2, 5, 10, 20, 40, 80)
NO_BATCH = uuid.UUID(int=0)


@dataclass(slots=True)
class Submission:
    """A batch that was submitted, or may have been. `tag` is contained in each of its items, and in no other.

    `content`: of the file that is uploaded first, for OpenAI's dialect; its create then has the file's id.
    `public_id`: None until a create was answered. `sends`: number of POSTs. `hashes`: SHA-256 of each item's request
    body.
    """

    tag: str
    owner: str
    dialect: str
    body: bytes = field(repr=False)
    hashes: list[bytes] = field(repr=False)
    idempotency_key: str | None
    content: bytes = field(default=b"", repr=False)
    public_id: str | None = None
    sends: int = 0
    is_rejected: bool = False
    is_cancelled: bool = False
    is_deleted: bool = False

    @property
    def path(self) -> str:
        return PATHS[self.dialect]

    @property
    def row_id(self) -> uuid.UUID:
        """Id of the batch's row; the zero id while unknown."""
        return uuid.UUID(self.public_id.rpartition("_")[2]) if self.public_id else NO_BATCH

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Idempotency-Key": self.idempotency_key} if self.idempotency_key else {}

    @property
    def upload_headers(self) -> Mapping[str, str]:
        return {**self.headers, "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}

    @property
    def upload_body(self) -> bytes:
        part = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name="
        purpose = f'{part}"purpose"\r\n\r\nbatch\r\n'
        file = f'{part}"file"; filename="{self.tag}.jsonl"\r\n\r\n'
        return f"{purpose}{file}".encode() + self.content + f"\r\n--{_BOUNDARY}--\r\n".encode()


def new_submission(
    number: int, *, owner: str, dialect: str, rng: random.Random, items: int | None = None
) -> Submission:
    tag = f"t{number}"
    count = items or rng.choice(SIZES)
    shape = _shape(dialect, rng)
    bodies = [_item(MODELS[shape], f"{tag}-{idx}", rng) for idx in range(count)]
    key = f"key-{tag}" if rng.random() < 0.7 else None
    return Submission(
        tag=tag,
        owner=owner,
        dialect=dialect,
        body=_body(dialect, shape, bodies, tag, rng),
        hashes=[hashlib.sha256(one).digest() for one in bodies],
        idempotency_key=key,
        content=_lines(ENDPOINTS[shape], bodies, tag) if dialect == "openai" else b"",
    )


def _body(dialect: str, shape: str, bodies: list[bytes], tag: str, rng: random.Random) -> bytes:
    """Of OpenAI's dialect, all but the file's id."""
    if dialect == "relay":
        return _relay(shape, bodies, tag, rng)
    if dialect == "openai":
        return f'"endpoint": "{ENDPOINTS[shape]}", "completion_window": "24h"}}'.encode()
    return _with_custom_ids(bodies, tag)


def _shape(dialect: str, rng: random.Random) -> str:
    if dialect == "relay":
        return rng.choice(list(MODELS))
    if dialect == "openai":
        return rng.choice(list(ENDPOINTS))
    return "openai" if dialect == "chat" else "anthropic"


def _item(model: str, text: str, rng: random.Random) -> bytes:
    """Request body with irregular white space, to check that it reaches the upstream byte for byte."""
    padding = " " * rng.randrange(3) + "é\\u0000" * rng.randrange(3)
    members = f'"messages": [{{"role": "user", "content": "{text}{padding}"}}], "input":"{text}"'
    return f'{{ "model":"{model}", {members} ,"max_tokens": 16, "n": 1.0}}'.encode()


def _relay(shape: str, bodies: list[bytes], tag: str, rng: random.Random) -> bytes:
    parts = [f'"shape": "{shape}"', f'"metadata": {{"tag": "{tag}"}}']
    if rng.random() < 0.7:
        parts.append(f'"max_attempts": {rng.choice((1, 2, 3, 5))}')
    if rng.random() < 0.5:
        parts.append(f'"on_rate_limit": "{rng.choice(("wait", "fail"))}"')
    if rng.random() < 0.1:
        parts.append('"expires_in_seconds": 60')
    return f'{{{", ".join(parts)}, "requests": ['.encode() + b",".join(bodies) + b"]}"


def _with_custom_ids(bodies: list[bytes], tag: str) -> bytes:
    items = [f'{{"custom_id": "{tag}-{idx}", "params": '.encode() + b + b"}" for idx, b in enumerate(bodies)]
    return b'{"requests": [' + b",".join(items) + b"]}"


def _lines(endpoint: str, bodies: list[bytes], tag: str) -> bytes:
    return b"\r\n".join(
        f'{{"custom_id": "{tag}-{idx}", "method": "POST", "url": "{endpoint}", "body": '.encode() + b + b"}"
        for idx, b in enumerate(bodies)
    )
