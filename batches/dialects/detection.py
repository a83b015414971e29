"""Which dialect a body sent to `/v1/batches` is in: its members decide, never a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batches.dialects import CHAT, OPENAI, RELAY
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from batches.dialects import Dialect
    from batches.dialects.body_parser import SubmissionBody


def detect_dialect(body: SubmissionBody) -> Dialect:
    """`shape`: Relay's. `requests` alone: chat. `input_file_id`: OpenAI's. Null is absent.

    Raises InvalidRequest that says which member is missing, or in conflict.
    """
    for other in ("shape", "requests"):
        if body.has("input_file_id") and body.has(other):
            raise InvalidRequest(
                f"`input_file_id` and `{other}` exclude each other: a file holds the requests, or the body does.",
                code="conflicting_fields",
                param=other,
            )
    if body.has("shape"):
        return RELAY
    if body.has("input_file_id"):
        return OPENAI
    if not body.has("requests"):
        if body.has("endpoint") or body.has("completion_window"):
            raise InvalidRequest("`input_file_id` is missing.", code="missing_field", param="input_file_id")
        raise InvalidRequest(
            "`requests` is missing: `requests` of `custom_id` and `params`, `shape` with `requests` of bare bodies, or "
            "`input_file_id` with `endpoint` and `completion_window`.",
            code="missing_field",
            param="requests",
        )
    return CHAT
