"""Parse OpenAI's `{input_file_id, endpoint, completion_window, …}`. What the file holds is validated later.

https://platform.openai.com/docs/api-reference/batch/create
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings

from batches.dialects.body_members import read_member, read_metadata
from batches.dialects.openai.endpoints import SHAPE_BY_ENDPOINT
from batches.files.upload_fields import ANCHOR, MAX_LIFETIME_SECONDS, MIN_LIFETIME_SECONDS
from batches.models.file import parse_file_id
from batches.states import RateLimitMode
from batches.submission.store_rows import NO_SUCH_FILE
from batches.submission.submission import Submission
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    import uuid

    from batches.dialects.body_parser import SubmissionBody

COMPLETION_WINDOW = "24h"
LIFETIME_SECONDS = 86_400


class _ExpiresAfter(msgspec.Struct):
    anchor: str
    seconds: int


def parse_file_submission(body: SubmissionBody) -> Submission:
    """Build the submission, which has no requests yet. Raises InvalidRequest that names the parameter."""
    return Submission(
        dialect="openai",
        shape=_shape(body),
        requests=(),
        max_attempts=settings.RELAY_BATCH_MAX_ATTEMPTS,
        on_rate_limit=RateLimitMode.WAIT,
        lifetime_seconds=_lifetime_seconds(body),
        metadata=read_metadata(body),
        input_file_id=_input_file_id(body),
        output_lifetime_seconds=_output_lifetime_seconds(body),
    )


def _shape(body: SubmissionBody) -> str:
    endpoint = _read_text(body, "endpoint")
    if endpoint not in SHAPE_BY_ENDPOINT:
        raise InvalidRequest(f"`endpoint` must be one of {', '.join(SHAPE_BY_ENDPOINT)}.", param="endpoint")
    return SHAPE_BY_ENDPOINT[endpoint]


def _lifetime_seconds(body: SubmissionBody) -> int:
    if _read_text(body, "completion_window") != COMPLETION_WINDOW:
        raise InvalidRequest(
            f"`completion_window` must be {COMPLETION_WINDOW}: batches begin at once, and what has not started "
            "by then expires.",
            param="completion_window",
        )
    return LIFETIME_SECONDS


def _input_file_id(body: SubmissionBody) -> uuid.UUID:
    file_id = parse_file_id(_read_text(body, "input_file_id"))
    if file_id is None:
        raise InvalidRequest(NO_SUCH_FILE, param="input_file_id")
    return file_id


def _read_text(body: SubmissionBody, name: str) -> str:
    """Return a string of the caller's, empty for one that is too long; raises InvalidRequest for an absent one."""
    if not body.has(name):
        raise InvalidRequest(f"`{name}` is missing.", code="missing_field", param=name)
    return read_member(body, name, str) or ""


def _output_lifetime_seconds(body: SubmissionBody) -> int | None:
    if not body.has("output_expires_after"):
        return None
    given: _ExpiresAfter | None = read_member(body, "output_expires_after", _ExpiresAfter)
    shortest, longest = MIN_LIFETIME_SECONDS, MAX_LIFETIME_SECONDS
    if given is None or given.anchor != ANCHOR or not shortest <= given.seconds <= longest:
        raise InvalidRequest(
            f"`output_expires_after` must be an object with `anchor` {ANCHOR} and `seconds`, a whole number from "
            f"{shortest} to {longest}.",
            param="output_expires_after",
        )
    return given.seconds
