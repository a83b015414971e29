"""The failure of a request, as a line of the error file shows it: an HTTP status and an error body.

https://platform.openai.com/docs/guides/batch
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Struct

from batches.results.results import UNREADABLE_CODE
from relaybatch.http.body.json_member import Member, is_present
from relaybatch.http.body.json_scan import is_too_deep
from relaybatch.http.body.utf8 import invalid_utf8_at
from routing.calls.failures import FailureCode

if TYPE_CHECKING:
    from batches.dialects.results.error_types import ItemError
    from batches.results.results import Result

# The status that stands for each failure of ours, or for an upstream's that has none. Others are 500.
_STATUS_BY_CODE: dict[str, int] = {
    FailureCode.UPSTREAM_UNREACHABLE: 502,
    FailureCode.UPSTREAM_UNREADABLE: 502,
    FailureCode.NO_HEALTHY_KEYS: 503,
    FailureCode.CROSS_SHAPE: 400,
    FailureCode.MODEL_NOT_FOUND: 404,
    FailureCode.MODEL_NOT_ALLOWED: 403,
    FailureCode.MODEL_DISABLED: 403,
    FailureCode.NO_BINDING: 503,
    FailureCode.NO_KEYS: 503,
    FailureCode.RATE_LIMITED: 429,
    FailureCode.USAGE_LIMIT_EXCEEDED: 429,
    FailureCode.CREDENTIAL_DISABLED: 401,
    FailureCode.CREDENTIAL_REVOKED: 401,
    FailureCode.CREDENTIAL_EXPIRED: 401,
    FailureCode.CREDENTIAL_ROTATED: 401,
    FailureCode.CREDENTIAL_DELETED: 401,
    FailureCode.POLICY_DELETED: 403,
    FailureCode.POLICY_DISABLED: 403,
    FailureCode.PROJECT_DISABLED: 403,
    FailureCode.PRINCIPAL_DISABLED: 403,
    FailureCode.INVALID_ITEM: 400,
}
_TYPE_BY_STATUS = {403: "permission_error", 429: "rate_limit_error"}


class _UpstreamBody(Struct):
    error: Member = UNSET


class _Error(Struct, frozen=True, kw_only=True):
    message: str
    type: str
    param: str | None
    code: str | None


class _ErrorBody(Struct, frozen=True, kw_only=True):
    error: _Error


_upstream_decoder = msgspec.json.Decoder(_UpstreamBody)


def error_status(result: Result) -> int:
    """The upstream's status, or the one that stands for the failure: 400 or more in both cases."""
    row = result.row
    if row.error_code == FailureCode.UPSTREAM_STATUS and row.upstream_status:
        # A redirect is not followed, so it is an error; a line of this file never has a lower status.
        return row.upstream_status if row.upstream_status >= 400 else 502
    return _STATUS_BY_CODE.get(row.error_code, 500)


def error_body(result: Result, error: ItemError) -> bytes:
    """JSON with a member `error`: the upstream's own body if it is whole and such an object, else one of ours."""
    row = result.row
    if row.error_code == FailureCode.UPSTREAM_STATUS and _is_error_body(bytes(row.upstream_error or b"")):
        return bytes(row.upstream_error or b"")
    return msgspec.json.encode(_ErrorBody(error=_own_error(result, error)))


def _is_error_body(body: bytes) -> bool:
    try:
        decoded = _upstream_decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return is_present(decoded.error) and invalid_utf8_at(body) is None and not is_too_deep(body, around=3)


def _own_error(result: Result, error: ItemError) -> _Error:
    status = error_status(result)
    default = "server_error" if status >= 500 else "invalid_request_error"
    return _Error(
        message=error.message,
        type=_TYPE_BY_STATUS.get(status, default),
        param=None,
        code=UNREADABLE_CODE if result.is_unreadable else result.row.error_code,
    )
