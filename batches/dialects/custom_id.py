"""Parse `requests` of `{custom_id, params}`, which two dialects share. The contents of `params` are not checked here:
bad ones fail when their item runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from msgspec import UNSET, Raw

from batches.dialects.item_errors import raise_item_errors
from batches.states import RateLimitMode
from batches.submission.submission import Submission
from relaybatch.http.body.json_member import Member, is_present
from relaybatch.http.body.json_scan import is_too_deep, too_deep

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping, Sequence

    from relaybatch.http.errors import ApiError

LIFETIME_SECONDS = 86_400
# One character in JSON takes at most two escapes, when it is beyond U+FFFF.
MAX_ESCAPE_BYTES = 12


@dataclass(frozen=True, slots=True)
class CustomIdRule:
    """What a `custom_id` may be. `expected` completes "must be" in the error message."""

    pattern: re.Pattern[str]
    max_characters: int
    expected: str


class _Item(msgspec.Struct, frozen=True):
    custom_id: Member = UNSET
    params: Member = UNSET


_item_decoder = msgspec.json.Decoder(_Item)


def parse_custom_id_submission(
    requests: Sequence[Raw],
    *,
    dialect: str,
    shape: str,
    rule: CustomIdRule,
    too_large: type[ApiError],
    upstream_headers: Mapping[str, str],
) -> Submission:
    """Build the submission.

    Raises InvalidRequest that names every bad item, or `too_large` when items are over the limit.
    """
    params: list[Raw] = []
    ids: dict[str, int] = {}
    raise_item_errors(_item_problems(requests, rule=rule, ids=ids, params=params))
    raise_item_errors(_oversized_items(params), error=too_large, code="item_too_large")
    _check_depth(params)
    return Submission(
        dialect=dialect,
        shape=shape,
        requests=params,
        custom_ids=list(ids),
        max_attempts=settings.RELAY_BATCH_MAX_ATTEMPTS,
        on_rate_limit=RateLimitMode.WAIT,
        lifetime_seconds=LIFETIME_SECONDS,
        upstream_headers=upstream_headers,
    )


def _parse_item(request: Raw) -> _Item | None:
    try:
        return _item_decoder.decode(request)
    except msgspec.ValidationError:
        return None


def _item_problems(
    requests: Sequence[Raw], *, rule: CustomIdRule, ids: dict[str, int], params: list[Raw]
) -> Iterator[tuple[str, str]]:
    """Yield `(param, problem)` in order. Fills `ids` (id to index) and `params` with those of the good items."""
    for idx, item in enumerate(map(_parse_item, requests)):
        param = f"requests[{idx}]"
        if item is None:
            yield param, "must be an object with `custom_id` and `params`"
            continue
        if problem := _id_problem(item.custom_id, idx=idx, rule=rule, ids=ids):
            yield f"{param}.custom_id", problem
        if not is_present(item.params):
            yield f"{param}.params", "is missing"
        elif bytes(memoryview(item.params)[:1]) != b"{":
            yield f"{param}.params", "must be an object"
        else:
            params.append(item.params)


def _id_problem(member: Member, *, idx: int, rule: CustomIdRule, ids: dict[str, int]) -> str | None:
    if not is_present(member):
        return "is missing"
    quoted = memoryview(member)
    if bytes(quoted[:1]) != b'"':
        return "must be a string"
    too_long = len(quoted) > 2 + rule.max_characters * MAX_ESCAPE_BYTES
    custom_id = "" if too_long else msgspec.json.decode(quoted, type=str)
    if not rule.pattern.fullmatch(custom_id):
        return f"must be {rule.expected}"
    first = ids.setdefault(custom_id, idx)
    return None if first == idx else f"is the same as that of requests[{first}]"


def _oversized_items(params: Sequence[Raw]) -> Iterator[tuple[str, str]]:
    limit = settings.RELAY_CUSTOM_ID_MAX_ITEM_BYTES
    for idx, one in enumerate(params):
        if len(one) > limit:
            yield f"requests[{idx}].params", f"has {len(one)} bytes; at most {limit} are allowed"


def _check_depth(params: Sequence[Raw]) -> None:
    for idx, one in enumerate(params):
        if is_too_deep(memoryview(one), around=3):
            raise too_deep(f"requests[{idx}].params")
