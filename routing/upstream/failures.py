"""Why a call has no usable response: a stable public code, and one sentence for people."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Failure:
    """`message` never holds a prompt, an answer, a credential or a secret. `retry_after_seconds`: 0 to 900.

    `retryable`: another attempt may end differently. `upstream_error`: the first 4 KiB of the upstream's error
    body, for the owner alone (so it stays out of every repr).
    """

    code: str
    message: str
    retryable: bool = False
    retry_after_seconds: float | None = None
    upstream_status: int | None = None
    upstream_error: bytes = field(default=b"", repr=False)


class CallFailed(Exception):  # noqa: N818 -- carries a Failure to `send()`, which turns it into an outcome
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure
