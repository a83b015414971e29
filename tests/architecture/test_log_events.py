"""Every log call of ours writes a fixed event with known fields, and operations.md lists the event."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from relaybatch.log_format import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("relaybatch", "batches", "usage", "routing")
LOGGERS = ("logger", "audit", "access")
METHODS = ("debug", "info", "warning", "error", "exception", "critical", "log")
EVENT = re.compile(r"[a-z*][a-z0-9*, _-]*[a-z0-9*]")


@dataclass(frozen=True, slots=True)
class LogCall:
    """`passed_events`: values of `event=` in the module, for a function that logs its parameter `event`."""

    place: str
    call: ast.Call
    method: str
    passed_events: tuple[str, ...]

    @property
    def positional(self) -> list[ast.expr]:
        """Without the level of `logger.log`."""
        return self.call.args[1:] if self.method == "log" else self.call.args

    @property
    def events(self) -> tuple[str, ...]:
        first = self.positional[0] if self.positional else None
        if isinstance(first, ast.Name) and first.id == "event":
            return self.passed_events
        return (constant(first),)

    @property
    def fields(self) -> set[str]:
        """The fields of `extra=`; with `?` among them where they cannot be read here.

        They stand in the call, or are a claim's `log_fields`, or a function's own `**fields`.
        """
        extra = next((keyword.value for keyword in self.call.keywords if keyword.arg == "extra"), None)
        pairs = zip(extra.keys, extra.values, strict=True) if isinstance(extra, ast.Dict) else [(None, extra)]
        return {constant(key) if key else spread_field(value) for key, value in pairs} - {""}


def spread_field(node: ast.expr | None) -> str:
    """`?` for a dictionary whose keys nobody knows; empty for those that other tests know, and for none."""
    is_known = node is None or ast.unparse(node).endswith(("log_fields", "fields"))
    return "" if is_known else "?"


def constant(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def pattern(node: ast.expr) -> str:
    """A constant, or an f-string with `*` for each value: one of a few events."""
    if isinstance(node, ast.JoinedStr):
        return "".join(constant(part) or "*" for part in node.values)
    return constant(node)


def log_calls(path: Path) -> Iterator[LogCall]:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    keywords = [keyword for call in calls for keyword in call.keywords if keyword.arg == "event"]
    passed = tuple(pattern(keyword.value) for keyword in keywords)
    for call in calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in METHODS:
            continue
        if isinstance(call.func.value, ast.Name) and call.func.value.id in LOGGERS:
            yield LogCall(f"{path.relative_to(ROOT)}:{call.lineno}", call, call.func.attr, passed)


CALLS = [
    call
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    for call in log_calls(path)
]


def documented_events() -> set[str]:
    """What stands in backticks in the tables of the section "Logs", and has the form of an event."""
    (page,) = (ROOT / "docs").rglob("operations.md")
    section = page.read_text().partition("\n## Logs\n")[2].partition("\n## ")[0]
    rows = "\n".join(line for line in section.splitlines() if line.startswith("| `"))
    return {text for text in re.findall(r"`([^`]+)`", rows) if EVENT.fullmatch(text) and " " in text}


def test_there_are_log_calls_to_check() -> None:
    assert len(CALLS) > 20


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.place)
def test_a_log_call_writes_a_fixed_event_with_known_fields(call: LogCall) -> None:
    assert call.events
    assert [event for event in call.events if not EVENT.fullmatch(event)] == []
    assert len(call.positional) == 1, "what varies goes into extra="
    assert {keyword.arg for keyword in call.call.keywords} <= {"extra", "exc_info"}
    assert call.fields <= set(FIELDS)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.place)
def test_the_event_of_a_log_call_is_documented(call: LogCall) -> None:
    documented = documented_events()
    assert [
        event for event in call.events if not any(fnmatchcase(known, event) for known in documented)
    ] == []


def test_no_event_is_documented_that_is_never_logged() -> None:
    events = {event for call in CALLS for event in call.events}
    unknown = {known for known in documented_events() if not any(fnmatchcase(known, e) for e in events)}
    assert unknown == set()


def test_loggers_have_the_names_that_this_test_knows() -> None:
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    names = {
        name
        for path in sources
        for name in re.findall(r"^(\w+) = logging\.getLogger\(", path.read_text(), re.MULTILINE)
    }
    assert names <= set(LOGGERS)
