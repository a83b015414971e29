"""What a call's body asks for, as far as routing must know it: the model, and that no stream is wanted."""

from __future__ import annotations

from typing import Any

import msgspec

from routing.failures import CallFailed, Failure
from routing.top_level import has_one_model


class _Fields(msgspec.Struct):
    model: Any = None
    stream: Any = None


_FIELDS = msgspec.json.Decoder(_Fields)


def requested_model(body: bytes) -> str:
    """The model that a body names. Raises CallFailed (`invalid_item`) for what no adapter could send."""
    fields = _fields(body)
    if fields.model is None:
        raise _invalid("model is missing")
    if not isinstance(fields.model, str) or not fields.model:
        raise _invalid("model must be a non-empty string")
    if not has_one_model(body):
        raise _invalid("model is given twice")
    if fields.stream is not None and fields.stream is not False:
        raise _invalid("stream must be false or left out: an item has one whole answer")
    return fields.model


def _fields(body: bytes) -> _Fields:
    try:
        return _FIELDS.decode(body)
    except msgspec.ValidationError:
        raise _invalid("the body is not a JSON object") from None
    except (msgspec.DecodeError, RecursionError):
        raise _invalid("the body is not JSON, or nested too deep") from None


def _invalid(message: str) -> CallFailed:
    return CallFailed(Failure(code="invalid_item", message=message))
