"""Parse Relay's `{shape, requests: [body, …]}`. Whatever can be found wrong at submit is rejected at submit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from msgspec import UNSET, Raw, UnsetType

from batches.dialects.body_members import read_integer, read_member, read_metadata
from batches.dialects.body_parser import split_requests
from batches.dialects.forwarded_headers import upstream_headers
from batches.dialects.item_errors import raise_item_errors
from batches.states import RateLimitMode
from batches.submission.submission import Submission
from relaybatch.http.body.json_scan import is_too_deep, too_deep
from relaybatch.http.errors import InvalidRequest
from routing.adapters import ADAPTERS
from routing.calls.json_members import has_one_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from batches.dialects.body_parser import SubmissionBody

# Adapters whose bodies are not accepted here, as in Relay: embeddings are batched by files alone.
_NOT_A_SHAPE = frozenset({"openai_embeddings"})
MAX_ATTEMPTS = 10
MIN_LIFETIME_SECONDS, MAX_LIFETIME_SECONDS = 60, 2_592_000
# Longer items skip the fast check, which decodes `model`: that may be nearly the whole item.
MAX_FAST_CHECK_BYTES = 65_536


class _UsualItem(msgspec.Struct):
    """A valid item of usual size, as far as submit decodes it."""

    model: str
    stream: bool | None = None
    custom_id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class _AnyItem(msgspec.Struct):
    model: Raw | UnsetType = UNSET
    stream: Raw | UnsetType = UNSET
    custom_id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


_usual_item_decoder = msgspec.json.Decoder(_UsualItem)
_any_item_decoder = msgspec.json.Decoder(_AnyItem)


def parse_relay_submission(body: SubmissionBody, *, headers: Mapping[str, str]) -> Submission:
    """Build the submission. Raises InvalidRequest that names the first 100 bad items and counts the others."""
    shape = _shape(body)
    requests = split_requests(body, max_items=settings.RELAY_BATCH_MAX_ITEMS)
    raise_item_errors(_item_problems(requests))
    return Submission(
        dialect="relay",
        shape=shape,
        requests=requests,
        max_attempts=read_integer(body, "max_attempts", minimum=1, maximum=MAX_ATTEMPTS) or 1,
        on_rate_limit=_on_rate_limit(body),
        lifetime_seconds=read_integer(
            body, "expires_in_seconds", minimum=MIN_LIFETIME_SECONDS, maximum=MAX_LIFETIME_SECONDS
        ),
        metadata=read_metadata(body),
        upstream_headers=upstream_headers(headers) if shape == "anthropic" else {},
    )


def accepted_shapes() -> list[str]:
    """The values of `shape`: each adapter serves one, and most of them are accepted here."""
    return [name for name in ADAPTERS if name not in _NOT_A_SHAPE]


def _shape(body: SubmissionBody) -> str:
    shape, accepted = read_member(body, "shape", str), accepted_shapes()
    if shape not in accepted:
        raise InvalidRequest(
            f"`shape` must be one of {', '.join(accepted)}.", code="unknown_shape", param="shape"
        )
    return str(shape)


def _item_problems(requests: Sequence[Raw]) -> Iterator[tuple[str, str]]:
    """Yield `(param, problem)` of each bad item, in order."""
    for idx, request in enumerate(requests):
        if is_too_deep(memoryview(request), around=2):
            raise too_deep(f"requests[{idx}]")
        if not _passes_fast_check(request) and (found := _item_problem(request)):
            field, problem = found
            yield f"requests[{idx}]{field}", problem


def _passes_fast_check(request: Raw) -> bool:
    """Whether a quick look finds the item valid; it is fast enough for 50,000 of them."""
    if len(request) > MAX_FAST_CHECK_BYTES:
        return False
    try:
        item = _usual_item_decoder.decode(request)
    except msgspec.ValidationError:
        return False
    is_chat = item.custom_id is not UNSET and item.params is not UNSET
    return bool(item.model) and not item.stream and not is_chat and has_one_model(request)


def _item_problem(request: Raw) -> tuple[str, str] | None:
    try:
        item = _any_item_decoder.decode(request)
    except msgspec.ValidationError:
        return "", "must be an object"
    if not isinstance(item.model, Raw):
        hint = " (items with `params` are sent without `shape`)" if item.params is not UNSET else ""
        return ".model", f"is missing{hint}"
    if item.custom_id is not UNSET and item.params is not UNSET:
        return ".params", "is in conflict with `shape`: items of `custom_id` and `params` are sent without it"
    if not has_one_model(request):
        return ".model", "stands there more than once, in whatever case"
    if bytes(memoryview(item.model)[:1]) != b'"':
        return ".model", "must be a string"
    if len(item.model) == len('""'):
        return ".model", "must not be empty"
    if isinstance(item.stream, Raw) and bytes(memoryview(item.stream)[:6]) not in (b"null", b"false"):
        return ".stream", "must be absent, null or false: a batch has nobody to stream to"
    return None


def _on_rate_limit(body: SubmissionBody) -> str:
    if not body.has("on_rate_limit"):
        return RateLimitMode.FAIL
    value = read_member(body, "on_rate_limit", str)
    if value not in list(RateLimitMode):
        raise InvalidRequest("`on_rate_limit` must be fail or wait.", param="on_rate_limit")
    return str(value)
