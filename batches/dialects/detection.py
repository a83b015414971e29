"""Whose dialect a body sent to `/v1/batches` is in: told by its members, never by a header."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, UnsetType

from batches.dialects import RELAY
from batches.dialects.wire import cut_requests
from relaybatch.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batches.dialects import Dialect
    from batches.dialects.wire import Wire


class _MayHaveParams(msgspec.Struct):
    params: Raw | UnsetType = UNSET


_may_have_params = msgspec.json.Decoder(_MayHaveParams)


def detected(wire: Wire) -> Dialect:
    """`shape`: Relay's. `requests` of objects with `params`: chat. `input_file_id`: OpenAI's. Null is absent.

    Raises InvalidRequest that says which member is missing, in conflict, or of a dialect that is not served.
    """
    for other in ("shape", "requests"):
        if wire.has("input_file_id") and wire.has(other):
            raise InvalidRequest(
                f"`input_file_id` and `{other}` exclude each other: a file holds the requests, or the body does.",
                code="conflicting_fields",
                param=other,
            )
    if wire.has("shape"):
        return RELAY
    if wire.has("input_file_id"):
        raise _not_served("Batches from an input file are not served yet", param="input_file_id")
    if not wire.has("requests"):
        raise _missing_shape("The body has neither `shape` and `requests` nor `input_file_id`")
    _require_params(cut_requests(wire))
    raise _not_served("Submissions of `requests` with `params` are not served yet", param="requests")


def _require_params(requests: Sequence[memoryview]) -> None:
    bare = [idx for idx, request in enumerate(requests) if not _has_params(request)]
    if len(bare) == len(requests):
        raise _missing_shape("`requests` holds bare bodies, which need a `shape`")
    if bare:
        raise InvalidRequest(
            f"`requests` mixes items with `params` and without: requests[{bare[0]}] has none.",
            code="missing_field",
            param=f"requests[{bare[0]}].params",
        )


def _has_params(request: memoryview) -> bool:
    try:
        return _may_have_params.decode(request).params is not UNSET
    except msgspec.ValidationError:
        return False


def _missing_shape(reason: str) -> InvalidRequest:
    message = f"{reason}: `shape` is missing (openai, openai_responses or anthropic)."
    return InvalidRequest(message, code="missing_field", param="shape")


def _not_served(reason: str, *, param: str) -> InvalidRequest:
    message = f"{reason}; send `shape` and `requests` instead."
    return InvalidRequest(message, code="not_served", param=param)
