"""What a call's body asks for, as far as routing must know it: the model, and that no stream is wanted."""

from __future__ import annotations

import json
import re

import msgspec
from msgspec import Raw

from routing.resolution.model_names import MAX_NAME_CHARACTERS
from routing.upstream.failures import CallFailed, Failure, FailureCode
from routing.upstream.json_members import has_one_model

_NULL = Raw(b"null")
# Of one character in JSON: two escapes, for what is beyond U+FFFF.
_MAX_CHARACTER_BYTES = 12
# Whatever is longer is too long for a name in characters too, and so is this much of its beginning.
_MAX_NAME_BYTES = 2 + (MAX_NAME_CHARACTERS + 2) * _MAX_CHARACTER_BYTES
# Not possessive: before Python 3.11.5, half an escape at the end is then taken as well
# (https://github.com/python/cpython/issues/106052).
_STRING_PREFIX = re.compile(rb'"(?:[^"\\]+|\\(?:u[0-9a-fA-F]{4}|[^u]))*', re.DOTALL)


class _Fields(msgspec.Struct):
    model: Raw = _NULL
    stream: Raw = _NULL


_FIELDS = msgspec.json.Decoder(_Fields)


def requested_model(body: bytes) -> str:
    """The model that a body names. Raises CallFailed (`invalid_item`) for what no adapter could send.

    Of a name too long for any model, only a beginning that is too long as well.
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
    """Without a copy of a value of any size."""
    return len(value) == len(text) and bytes(value) == text


def _decode_name(quoted: Raw) -> str:
    if len(quoted) <= _MAX_NAME_BYTES:
        return msgspec.json.decode(quoted, type=str)
    beginning = _STRING_PREFIX.match(memoryview(quoted)[:_MAX_NAME_BYTES])
    text = beginning[0].decode(errors="ignore") if beginning else '"'
    return str(json.loads(f'{text}"', strict=False))


def _invalid_item(message: str) -> CallFailed:
    return CallFailed(Failure(code=FailureCode.INVALID_ITEM, message=message))
