"""Which dialect a body sent to `/v1/batches` is in: its members decide, never a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batches.dialects import CHAT, RELAY
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from batches.dialects import Dialect
    from batches.dialects.body_parser import SubmissionBody


def detect_dialect(body: SubmissionBody) -> Dialect:
    """`shape`: Relay's. `requests` alone: chat. `input_file_id`: OpenAI's, which is not served. Null is absent.

    Raises InvalidRequest that says which member is missing, in conflict, or of a dialect that is not served.
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
        raise InvalidRequest(
            "Files are not served yet, so `input_file_id` names none; send the requests in the body: `requests` of "
            "`custom_id` and `params`, or `shape` with `requests` of bare bodies.",
            code="not_served",
            param="input_file_id",
        )
    if not body.has("requests"):
        raise InvalidRequest(
            "`requests` is missing: `requests` of `custom_id` and `params`, or `shape` with `requests` of bare bodies.",
            code="missing_field",
            param="requests",
        )
    return CHAT
