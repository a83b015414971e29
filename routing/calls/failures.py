"""Why a call has no usable response: a stable public code, and one sentence for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class FailureCode(StrEnum):
    """Every `error_code` of an item and `error_kind` of a usage event. docs/api/errors.md says what each means."""

    UPSTREAM_STATUS = "upstream_status"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    UPSTREAM_UNREADABLE = "upstream_unreadable"
    TIMEOUT = "timeout"
    CROSS_SHAPE = "cross_shape"
    MODEL_NOT_FOUND = "model_not_found"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    MODEL_DISABLED = "model_disabled"
    NO_BINDING = "no_binding"
    NO_KEYS = "no_keys"
    RATE_LIMITED = "rate_limited"
    NO_HEALTHY_KEYS = "no_healthy_keys"
    USAGE_LIMIT_EXCEEDED = "usage_limit_exceeded"
    INVALID_ITEM = "invalid_item"
    CREDENTIAL_DISABLED = "credential_disabled"
    CREDENTIAL_REVOKED = "credential_revoked"
    CREDENTIAL_EXPIRED = "credential_expired"
    CREDENTIAL_ROTATED = "credential_rotated"
    CREDENTIAL_DELETED = "credential_deleted"
    POLICY_DISABLED = "policy_disabled"
    POLICY_DELETED = "policy_deleted"
    PROJECT_DISABLED = "project_disabled"
    PRINCIPAL_DISABLED = "principal_disabled"
    LOAD_INPUT_FAILED = "load_input_failed"
    STORE_RESULT_FAILED = "store_result_failed"
    LOAD_RESULT_FAILED = "load_result_failed"
    WORKER_LOST = "worker_lost"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Failure:
    """`message` never holds a prompt, an answer, a credential or a secret. `retry_after_seconds`: 0 to 900.

    `retryable`: another attempt may end differently. `upstream_error`: the first 4 KiB of the upstream's error
    body, for the owner alone (so it stays out of every repr).
    """

    code: FailureCode
    message: str
    retryable: bool = False
    retry_after_seconds: float | None = None
    upstream_status: int | None = None
    upstream_error: bytes = field(default=b"", repr=False)


class CallFailed(Exception):  # noqa: N818 -- carries a Failure to `send()`, which turns it into an outcome
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure
