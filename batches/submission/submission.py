"""A submission in the core's one vocabulary: what every dialect turns a wire body into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Submission:
    """`requests`: each item's body, byte for byte as the caller wrote it (buffers into the request's body).

    `custom_ids` is empty for dialects without them, else as long as `requests`. `lifetime_seconds`: from
    creation to expiry, None = never. `on_rate_limit`: `fail` or `wait`.

    `input_file_id`: the file that holds the requests. Without `requests`, they are still to be read from it.
    `output_lifetime_seconds`: how long the files with the results are kept, None = until they are deleted.
    """

    dialect: str
    shape: str
    requests: Sequence[bytes | memoryview] = field(repr=False)
    max_attempts: int
    on_rate_limit: str
    custom_ids: Sequence[str] = field(default=(), repr=False)
    lifetime_seconds: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)
    upstream_headers: Mapping[str, str] = field(default_factory=dict)
    input_file_id: uuid.UUID | None = None
    output_lifetime_seconds: int | None = None
