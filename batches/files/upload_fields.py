"""The fields of an upload beside its file: what it is for, and when it expires.

https://platform.openai.com/docs/api-reference/files/create
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from batches.models.file import INPUT_PURPOSE
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

ANCHOR = "created_at"
MIN_LIFETIME_SECONDS, MAX_LIFETIME_SECONDS = 3_600, 2_592_000
ANCHOR_FIELD, SECONDS_FIELD = "expires_after[anchor]", "expires_after[seconds]"
# In Python and TypeScript, SDKs send brackets. Older ones in Go send dots; curl may send the object itself.
FIELDS = {
    "purpose": "purpose",
    "expires_after": "expires_after",
    **dict.fromkeys((ANCHOR_FIELD, "expires_after.anchor"), ANCHOR_FIELD),
    **dict.fromkeys((SECONDS_FIELD, "expires_after.seconds"), SECONDS_FIELD),
}
MAX_FIELD_BYTES = 1024
_WHOLE_NUMBER = re.compile("[0-9]{1,10}", re.ASCII)


def check_purpose(value: str | None) -> None:
    """Raise InvalidRequest unless this is the purpose that files are uploaded for."""
    if value is None:
        raise InvalidRequest(
            f"`purpose` is missing: `{INPUT_PURPOSE}`.", code="missing_field", param="purpose"
        )
    if value != INPUT_PURPOSE:
        raise InvalidRequest(f"`purpose` must be `{INPUT_PURPOSE}`.", param="purpose")


def parse_lifetime(fields: Mapping[str, str]) -> int | None:
    """Return the seconds from creation to expiry, None without them. Raises InvalidRequest.

    `fields`: by the names that FIELDS gives them.
    """
    anchor, seconds = fields.get(ANCHOR_FIELD), fields.get(SECONDS_FIELD)
    if "expires_after" in fields:
        if anchor is not None or seconds is not None:
            raise InvalidRequest(
                "`expires_after` and its members exclude each other.",
                code="conflicting_fields",
                param="expires_after",
            )
        anchor, seconds = _object_members(fields["expires_after"])
    if anchor is None and seconds is None:
        return None
    _check_anchor(anchor)
    return _parse_seconds(seconds)


def _check_anchor(anchor: str | None) -> None:
    if anchor is None:
        raise _missing(ANCHOR_FIELD)
    if anchor != ANCHOR:
        raise InvalidRequest(f"`{ANCHOR_FIELD}` must be `{ANCHOR}`.", param=ANCHOR_FIELD)


def _parse_seconds(text: str | None) -> int:
    if text is None:
        raise _missing(SECONDS_FIELD)
    seconds = int(text) if _WHOLE_NUMBER.fullmatch(text) else 0
    if not MIN_LIFETIME_SECONDS <= seconds <= MAX_LIFETIME_SECONDS:
        raise InvalidRequest(
            f"`{SECONDS_FIELD}` must be a whole number from {MIN_LIFETIME_SECONDS} to {MAX_LIFETIME_SECONDS}.",
            param=SECONDS_FIELD,
        )
    return seconds


def _object_members(text: str) -> tuple[str | None, str | None]:
    """Anchor and seconds of a JSON object, as if they had come in fields of their own; null counts as absent."""
    try:
        members: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest(
            "`expires_after` must be an object of `anchor` and `seconds`.", param="expires_after"
        ) from None
    anchor, seconds = members.get("anchor"), members.get("seconds")
    return (None if anchor is None else str(anchor)), (None if seconds is None else str(seconds))


def _missing(field: str) -> InvalidRequest:
    return InvalidRequest(f"`{field}` is missing beside the other.", code="missing_field", param=field)
