"""Check an input file line by line, and pack the requests of a good one into the batch's own payload."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from batches.file_batches.input_line import InputError, InputErrorCode, InputRequest, InvalidLine, parse_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batches.file_batches.line_reader import Line
    from batches.payloads.store import PayloadWriter

MAX_ERRORS = 100


@dataclass(slots=True)
class CheckedFile:
    """The outcome: `errors`, the first hundred, or the requests, whose bytes are one after the other in the payload."""

    custom_ids: list[str] = field(default_factory=list, repr=False)
    lengths: list[int] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)


def check_file(
    lines: Iterable[Line], *, writer: PayloadWriter, endpoint: str, max_items: int, max_line_bytes: int
) -> CheckedFile:
    """Check every line. What was written is of no use when there are errors."""
    checked = CheckedFile()
    line_of: dict[str, int] = {}
    for line in lines:
        if len(line_of) >= max_items:
            message = f"The file has more than {max_items} requests, the most that a batch may have."
            checked.errors = [InputError(InputErrorCode.TOO_MANY_TASKS, None, message)]
            return checked
        try:
            request = parse_line(line, endpoint=endpoint, max_line_bytes=max_line_bytes)
            _require_new(request.custom_id, line.number, line_of)
        except InvalidLine as invalid:
            checked.errors.append(InputError(invalid.code, line.number, invalid.message, invalid.param))
            if len(checked.errors) >= MAX_ERRORS:
                return checked
        else:
            _pack(request, writer, checked)
    if not line_of and not checked.errors:
        checked.errors = [InputError(InputErrorCode.EMPTY_FILE, None, "The file has no requests.")]
    return checked


def _require_new(custom_id: str, number: int, line_of: dict[str, int]) -> None:
    first = line_of.setdefault(custom_id, number)
    if first != number:
        raise InvalidLine(
            InputErrorCode.DUPLICATE_CUSTOM_ID,
            f"`custom_id` is the same as that of line {first}.",
            "custom_id",
        )


def _pack(request: InputRequest, writer: PayloadWriter, checked: CheckedFile) -> None:
    if not checked.errors:
        writer.write(request.body)
        checked.custom_ids.append(request.custom_id)
        checked.lengths.append(len(request.body))
