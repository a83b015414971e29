"""Check one line of an input file: `{"custom_id", "method": "POST", "url", "body": {…}}`.

What is in `body` is not checked here: a bad one fails when its item runs.

https://platform.openai.com/docs/api-reference/batch/request-input
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from relaybatch.http.body.json_member import Member, is_present
from relaybatch.http.body.json_scan import MAX_DEPTH, is_too_deep
from relaybatch.http.body.utf8 import invalid_utf8_at

if TYPE_CHECKING:
    from batches.file_batches.line_reader import Line

METHOD = "POST"
MAX_CUSTOM_ID_CHARACTERS = 512
# Each character takes at most two escapes of six bytes.
_MAX_TEXT_BYTES = 2 + MAX_CUSTOM_ID_CHARACTERS * 12


class InputErrorCode(StrEnum):
    """Every `errors.data[].code` of a failed batch. docs/api/errors.md says what each means."""

    INVALID_JSON_LINE = "invalid_json_line"
    MISSING_REQUIRED_PARAMETER = "missing_required_parameter"
    INVALID_METHOD = "invalid_method"
    INVALID_URL = "invalid_url"
    DUPLICATE_CUSTOM_ID = "duplicate_custom_id"
    EMPTY_FILE = "empty_file"
    TOO_MANY_TASKS = "too_many_tasks"
    TOO_MANY_OPEN_ITEMS = "too_many_open_items"
    INPUT_FILE_MISSING = "input_file_missing"


class InputError(NamedTuple):
    """`line`: counted from 1; None where it is about the whole file."""

    code: InputErrorCode
    line: int | None
    message: str
    param: str | None = None


class InvalidLine(Exception):  # noqa: N818
    def __init__(self, code: InputErrorCode, message: str, param: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.param = param


class InputRequest(NamedTuple):
    custom_id: str
    body: Raw


class _Members(msgspec.Struct):
    custom_id: Member = UNSET
    method: Member = UNSET
    url: Member = UNSET
    body: Member = UNSET


_decoder = msgspec.json.Decoder(_Members)


def parse_line(line: Line, *, endpoint: str, max_line_bytes: int) -> InputRequest:
    """Return the request of a line that is not blank. Raises InvalidLine."""
    if line.text is None:
        raise InvalidLine(
            InputErrorCode.INVALID_JSON_LINE, f"The line is longer than {max_line_bytes} bytes."
        )
    members = _decode(line.text)
    custom_id = _read_text(members.custom_id, "custom_id")
    if _read_text(members.method, "method") != METHOD:
        raise InvalidLine(InputErrorCode.INVALID_METHOD, f"`method` must be {METHOD}.", "method")
    if _read_text(members.url, "url") != endpoint:
        raise InvalidLine(
            InputErrorCode.INVALID_URL, f"`url` must be the batch's endpoint, {endpoint}.", "url"
        )
    return InputRequest(custom_id, _read_body(members.body))


def _decode(text: bytes) -> _Members:
    if invalid_utf8_at(text) is not None:
        raise InvalidLine(InputErrorCode.INVALID_JSON_LINE, "The line is not valid UTF-8.")
    try:
        members = _decoder.decode(text)
    except msgspec.ValidationError:
        raise InvalidLine(InputErrorCode.INVALID_JSON_LINE, "The line is not a JSON object.") from None
    except (msgspec.DecodeError, RecursionError):
        raise InvalidLine(InputErrorCode.INVALID_JSON_LINE, "The line is not valid JSON.") from None
    if is_too_deep(text, around=0):
        raise InvalidLine(
            InputErrorCode.INVALID_JSON_LINE, f"The line is nested deeper than {MAX_DEPTH} levels."
        )
    return members


def _read_text(member: Member, name: str) -> str:
    """The text of a required member of 1 to 512 characters. U+0000 is refused: no column holds it."""
    if not is_present(member):
        raise _missing(name, "is missing")
    is_string = bytes(memoryview(member)[:1]) == b'"'
    text = msgspec.json.decode(member, type=str) if is_string and len(member) <= _MAX_TEXT_BYTES else ""
    if not 0 < len(text) <= MAX_CUSTOM_ID_CHARACTERS or "\0" in text:
        raise _missing(name, f"must be a string of 1 to {MAX_CUSTOM_ID_CHARACTERS} characters without U+0000")
    return text


def _read_body(member: Member) -> Raw:
    if not is_present(member):
        raise _missing("body", "is missing")
    if bytes(memoryview(member)[:1]) != b"{":
        raise _missing("body", "must be an object")
    return member


def _missing(name: str, problem: str) -> InvalidLine:
    return InvalidLine(InputErrorCode.MISSING_REQUIRED_PARAMETER, f"`{name}` {problem}.", name)
