"""Read the small members of a create's body, which dialects share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from batches.dialects.body_parser import SubmissionBody

MAX_METADATA_PAIRS, MAX_METADATA_KEY_CHARACTERS, MAX_METADATA_VALUE_CHARACTERS = 16, 64, 512
# Enough for metadata within its limits, every character written as two escapes, with white space between the pairs.
MAX_METADATA_BYTES = 131_072
# Of a member that holds a number or a keyword.
MAX_SCALAR_BYTES = 256


def read_member(body: SubmissionBody, name: str, kind: type, *, max_bytes: int = MAX_SCALAR_BYTES) -> Any:
    """The member decoded as that type; None when it is absent, of another type, or longer than `max_bytes`."""
    if not body.has(name) or len(body.member(name)) > max_bytes:
        return None
    try:
        return msgspec.json.decode(body.member(name), type=kind)
    except msgspec.ValidationError:
        return None


def read_integer(body: SubmissionBody, name: str, *, minimum: int, maximum: int) -> int | None:
    if not body.has(name):
        return None
    value = read_member(body, name, int)
    if value is None or not minimum <= value <= maximum:
        raise InvalidRequest(f"`{name}` must be a whole number from {minimum} to {maximum}.", param=name)
    return int(value)


def read_metadata(body: SubmissionBody) -> dict[str, str]:
    """The caller's pairs; none when it is absent. Raises InvalidRequest beyond OpenAI's limits."""
    if not body.has("metadata"):
        return {}
    pairs: dict[str, str] | None = read_member(body, "metadata", dict[str, str], max_bytes=MAX_METADATA_BYTES)
    if pairs is None or not _is_within_limits(pairs):
        raise InvalidRequest(
            f"`metadata` must be an object of at most {MAX_METADATA_PAIRS} pairs of strings, the keys of up to "
            f"{MAX_METADATA_KEY_CHARACTERS} and the values of up to {MAX_METADATA_VALUE_CHARACTERS} characters.",
            param="metadata",
        )
    if any("\0" in text for pair in pairs.items() for text in pair):
        raise InvalidRequest("`metadata` must not hold the character U+0000.", param="metadata")
    return pairs


def _is_within_limits(pairs: dict[str, str]) -> bool:
    return len(pairs) <= MAX_METADATA_PAIRS and all(
        len(key) <= MAX_METADATA_KEY_CHARACTERS and len(value) <= MAX_METADATA_VALUE_CHARACTERS
        for key, value in pairs.items()
    )
