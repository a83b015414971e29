"""Why an item failed, in the words of Anthropic's error types, with the upstream's own message where it gave one.

The types: https://docs.claude.com/en/api/errors
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from batches.results import LOST_ERROR

if TYPE_CHECKING:
    from batches.results import Result

MESSAGE_CHARACTERS = 2000

_KNOWN_TYPES = frozenset(
    {
        *("invalid_request_error", "authentication_error", "billing_error", "permission_error"),
        *("not_found_error", "rate_limit_error", "timeout_error", "api_error", "overloaded_error"),
    }
)
_BY_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# Codes that are not here are our own trouble, or the upstream's: api_error.
_BY_CODE = {
    "timeout": "timeout_error",
    "cross_shape": "invalid_request_error",
    "invalid_item": "invalid_request_error",
    "model_not_found": "not_found_error",
    "model_not_allowed": "permission_error",
    "model_disabled": "permission_error",
    "rate_limited": "rate_limit_error",
    "usage_limit_exceeded": "billing_error",
    **{
        f"credential_{fault}": "authentication_error"
        for fault in ("disabled", "revoked", "expired", "rotated", "deleted")
    },
    **dict.fromkeys(
        ("policy_deleted", "policy_disabled", "project_disabled", "principal_disabled"), "permission_error"
    ),
}
# Out of a body that was cut after its first 4 KiB.
_STRING_OF = rb'"%b"\s*:\s*"((?:[^"\\]++|\\.)*+)'
_MESSAGE = re.compile(_STRING_OF % b"message", re.DOTALL)
_TYPE = re.compile(_STRING_OF % b"type", re.DOTALL)
_HALF_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?$")


@dataclass(frozen=True, slots=True)
class ItemError:
    """`request_id`: the upstream's, None where its answer names none."""

    type: str
    message: str
    request_id: str | None = None


def item_error(result: Result) -> ItemError:
    """Of a discarded item, or of a completed one whose answer is lost."""
    row = result.row
    if result.is_lost:
        return ItemError("api_error", LOST_ERROR)
    if row.error_code != "upstream_status":
        return ItemError(_BY_CODE.get(row.error_code, "api_error"), row.error)
    said = _said(bytes(row.upstream_error or b""))
    return ItemError(
        type=said.type if said.type in _KNOWN_TYPES else _type_of_status(row.upstream_status or 0),
        message=said.message or row.error,
        request_id=said.request_id,
    )


def _type_of_status(status: int) -> str:
    return _BY_STATUS.get(status, "invalid_request_error" if 400 <= status < 500 else "api_error")


def _said(body: bytes) -> ItemError:
    """What an upstream's error body says; empty words where it is silent, or no JSON."""
    try:
        whole = json.loads(body.decode(errors="replace"))
    except (ValueError, RecursionError):
        return ItemError(_cut_string(_TYPE, body), _cut_string(_MESSAGE, body) or _plain(body))
    if not isinstance(whole, dict):
        return ItemError("", "")
    error = whole.get("error")
    inner = error if isinstance(error, dict) else whole
    message = error if isinstance(error, str) else inner.get("message") or _detail(inner.get("detail"))
    return ItemError(_text(inner.get("type")), _text(message), _text(whole.get("request_id")) or None)


def _detail(detail: Any) -> Any:
    """FastAPI's and its like: a sentence, or a list of `{loc, msg}`."""
    if not isinstance(detail, list):
        return detail
    return "; ".join(text for one in detail if isinstance(one, dict) and (text := _text(one.get("msg"))))


def _plain(body: bytes) -> str:
    """The first line of an answer in words; a page of HTML is none."""
    text = body.decode(errors="replace").strip()
    return "" if text.startswith(("<", "{", "[")) or "\0" in text else _text(text.partition("\n")[0].strip())


def _cut_string(pattern: re.Pattern[bytes], body: bytes) -> str:
    found = pattern.search(body) if body.lstrip().startswith(b"{") else None
    if found is None:
        return ""
    quoted = b'"' + _HALF_ESCAPE.sub(b"", found[1]) + b'"'
    try:
        return _text(json.loads(quoted.decode(errors="replace"), strict=False))
    except ValueError:
        return ""


def _text(value: Any) -> str:
    """A string that any JSON can hold: half a surrogate pair becomes a question mark."""
    if not isinstance(value, str):
        return ""
    return value[:MESSAGE_CHARACTERS].encode("utf-8", errors="replace").decode("utf-8")
