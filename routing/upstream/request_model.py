"""The members of a call's body that routing has to know: the model, and that `stream` is not set."""

from __future__ import annotations

import json
import re

import msgspec
from msgspec import Raw

from routing.calls.failures import CallFailed, Failure, FailureCode
from routing.calls.json_members import has_one_model
from routing.resolution.model_names import MAX_NAME_CHARACTERS

_NULL = Raw(b"null")
# The longest form of one character in JSON: two escapes, for one beyond U+FFFF.
_MAX_CHARACTER_BYTES = 12
# A string with more bytes has too many characters for a name, and so has its beginning of this length.
_MAX_NAME_BYTES = 2 + (MAX_NAME_CHARACTERS + 2) * _MAX_CHARACTER_BYTES
# Not possessive: before Python 3.11.5, half an escape at the end is then taken as well
# (https://github.com/python/cpython/issues/106052).
_STRING_PREFIX = re.compile(rb'"(?:[^"\\]+|\\(?:u[0-9a-fA-F]{4}|[^u]))*', re.DOTALL)


class _Fields(msgspec.Struct):
    model: Raw = _NULL
    stream: Raw = _NULL


_FIELDS = msgspec.json.Decoder(_Fields)


def requested_model(body: bytes) -> str:
    """The model that the body names. Raises CallFailed (`invalid_item`) for a body that no adapter could send.

    Of a name too long for any model, only the beginning is returned, which is too long as well.
    """
    try:
        return _checked_model(body)
    except msgspec.ValidationError:
        raise _invalid_item("the body is not a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _invalid_item("the body is not JSON, or nested too deep") from None


def _checked_model(body: bytes) -> str:
    fields = _FIELDS.decode(body)
    if _equals(fields.model, b"null"):
        raise _invalid_item("model is missing")
    if bytes(memoryview(fields.model)[:1]) != b'"' or _equals(fields.model, b'""'):
        raise _invalid_item("model must be a non-empty string")
    if not has_one_model(body):
        raise _invalid_item("model is given twice, in whatever case")
    if not (_equals(fields.stream, b"null") or _equals(fields.stream, b"false")):
        raise _invalid_item("stream must be false or left out: an item has one whole answer")
    return _decode_name(fields.model)


def _equals(value: Raw, text: bytes) -> bool:
    """Compare without copying a large value."""
    return len(value) == len(text) and bytes(value) == text


def _decode_name(quoted: Raw) -> str:
    if len(quoted) <= _MAX_NAME_BYTES:
        return msgspec.json.decode(quoted, type=str)
    beginning = _STRING_PREFIX.match(memoryview(quoted)[:_MAX_NAME_BYTES])
    text = beginning[0].decode(errors="ignore") if beginning else '"'
    return str(json.loads(f'{text}"', strict=False))


def _invalid_item(message: str) -> CallFailed:
    return CallFailed(Failure(code=FailureCode.INVALID_ITEM, message=message))
