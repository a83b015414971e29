"""Whose dialect a body sent to `/v1/batches` is in: told by its members, never by a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from msgspec import UNSET, Raw

from batches.dialects import CHAT, RELAY
from batches.dialects.body_parser import split_requests
from relaybatch.http.errors import InvalidRequest
from relaybatch.http.json_member import Member, is_present

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batches.dialects import Dialect
    from batches.dialects.body_parser import SubmissionBody


class _ChatItemProbe(msgspec.Struct):
    custom_id: Member = UNSET
    params: Member = UNSET


_chat_item_decoder = msgspec.json.Decoder(_ChatItemProbe)


def detect_dialect(body: SubmissionBody) -> Dialect:
    """`shape`: Relay's. `requests` with `custom_id` or `params`: chat. `input_file_id`: OpenAI's. Null is absent.

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
    at_most = max(settings.RELAY_BATCH_MAX_ITEMS, settings.RELAY_CUSTOM_ID_MAX_ITEMS)
    if _are_bare_bodies(split_requests(body, max_items=at_most)):
        raise InvalidRequest(
            "`requests` holds bare bodies, which need a `shape`: `shape` is missing "
            "(openai, openai_responses or anthropic).",
            code="missing_field",
            param="shape",
        )
    return CHAT


def _are_bare_bodies(requests: Sequence[Raw]) -> bool:
    """Whether there are objects among them, and none of these looks like chat's."""
    objects = False
    for request in requests:
        try:
            found = _chat_item_decoder.decode(request)
        except msgspec.ValidationError:
            continue
        objects = True
        if is_present(found.params) or is_present(found.custom_id):
            return False
    return objects
