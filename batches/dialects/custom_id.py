"""`requests` of `{custom_id, params}`, as two collections take them. What is in `params` shows when an item runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from msgspec import UNSET, Raw

from batches.dialects.body_parser import Part, cut_requests, is_there
from batches.dialects.item_errors import refuse_any
from batches.submission.submission import Submission
from relaybatch.http.json_scan import is_too_deep, too_deep

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping, Sequence

    from batches.dialects.body_parser import Wire
    from relaybatch.http.errors import ApiError

LIFETIME_SECONDS = 86_400
# Of one character in JSON: two escapes, for what is beyond U+FFFF.
LONGEST_ESCAPE_BYTES = 12


@dataclass(frozen=True, slots=True)
class CustomIds:
    """What a `custom_id` may be. `form` completes "must be"."""

    pattern: re.Pattern[str]
    most_characters: int
    form: str


class _Item(msgspec.Struct, frozen=True):
    custom_id: Part = UNSET
    params: Part = UNSET


_item = msgspec.json.Decoder(_Item)


def custom_id_submission(
    wire: Wire,
    *,
    dialect: str,
    shape: str,
    custom_ids: CustomIds,
    too_large: type[ApiError],
    upstream_headers: Mapping[str, str],
) -> Submission:
    """Raises InvalidRequest that names every bad item, or `too_large` for items over the limit."""
    params: list[Raw] = []
    ids: dict[str, int] = {}
    requests = cut_requests(wire, at_most=settings.RELAY_CUSTOM_ID_MAX_ITEMS)
    refuse_any(_problems(requests, custom_ids=custom_ids, ids=ids, params=params))
    refuse_any(_over_limit(params), error=too_large, code="item_too_large")
    _require_depth(params)
    return Submission(
        dialect=dialect,
        shape=shape,
        requests=params,
        custom_ids=list(ids),
        max_attempts=settings.RELAY_BATCH_MAX_ATTEMPTS,
        on_rate_limit="wait",
        lifetime_seconds=LIFETIME_SECONDS,
        upstream_headers=upstream_headers,
    )


def _read(request: Raw) -> _Item | None:
    try:
        return _item.decode(request)
    except msgspec.ValidationError:
        return None


def _problems(
    requests: Sequence[Raw], *, custom_ids: CustomIds, ids: dict[str, int], params: list[Raw]
) -> Iterator[tuple[str, str]]:
    """`(param, what is wrong)`, in order. Good ids go to `ids`, with their index, and good `params` to that list."""
    for idx, item in enumerate(map(_read, requests)):
        where = f"requests[{idx}]"
        if item is None:
            yield where, "must be an object with `custom_id` and `params`"
            continue
        if problem := _id_problem(item.custom_id, idx=idx, custom_ids=custom_ids, ids=ids):
            yield f"{where}.custom_id", problem
        if not is_there(item.params):
            yield f"{where}.params", "is missing"
        elif bytes(memoryview(item.params)[:1]) != b"{":
            yield f"{where}.params", "must be an object"
        else:
            params.append(item.params)


def _id_problem(part: Part, *, idx: int, custom_ids: CustomIds, ids: dict[str, int]) -> str | None:
    if not is_there(part):
        return "is missing"
    quoted = memoryview(part)
    if bytes(quoted[:1]) != b'"':
        return "must be a string"
    too_long = len(quoted) > 2 + custom_ids.most_characters * LONGEST_ESCAPE_BYTES
    custom_id = "" if too_long else msgspec.json.decode(quoted, type=str)
    if not custom_ids.pattern.fullmatch(custom_id):
        return f"must be {custom_ids.form}"
    first = ids.setdefault(custom_id, idx)
    return None if first == idx else f"is the same as that of requests[{first}]"


def _over_limit(params: Sequence[Raw]) -> Iterator[tuple[str, str]]:
    limit = settings.RELAY_CUSTOM_ID_MAX_ITEM_BYTES
    for idx, one in enumerate(params):
        if len(one) > limit:
            yield f"requests[{idx}].params", f"has {len(one)} bytes; at most {limit} are allowed"


def _require_depth(params: Sequence[Raw]) -> None:
    for idx, one in enumerate(params):
        if is_too_deep(memoryview(one), around=3):
            raise too_deep(f"requests[{idx}].params")
