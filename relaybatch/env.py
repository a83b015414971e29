"""Typed readers of environment variables.

A wrong value stops the start with one line that names the variable and the form expected, never its value.
"""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


def text(name: str, default: str = "") -> str:
    """The variable's value; an empty one counts as unset."""
    return os.environ.get(name, "") or default


def secret(name: str) -> str:
    """The variable, or the content of the file that `<name>_FILE` names (without its final newline)."""
    path = os.environ.get(f"{name}_FILE", "")
    if not path:
        return text(name)
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"{name}_FILE", "the path of a readable text file") from error


def integer(name: str, default: int, *, minimum: int, maximum: int = 2**53) -> int:
    return _integer(name, str(default), minimum=minimum, maximum=maximum)


def optional_integer(name: str, *, minimum: int, maximum: int = 2**53) -> int | None:
    raw = text(name)
    return _integer(name, raw, minimum=minimum, maximum=maximum) if raw else None


def flag(name: str) -> bool:
    raw = text(name).strip().lower()
    if raw in TRUE:
        return True
    if raw in FALSE:
        return False
    raise _wrong(name, "one of on, off, true, false, yes, no, 1, 0")


def choice(name: str, default: str, options: tuple[str, ...]) -> str:
    raw = text(name, default)
    if raw not in options:
        raise _wrong(name, f"one of {', '.join(options)}")
    return raw


def words(name: str) -> list[str]:
    """A list, split at commas; blanks around the parts are dropped."""
    return [part.strip() for part in text(name).split(",") if part.strip()]


def required(name: str, value: str, *, form: str) -> str:
    if not value:
        raise _wrong(name, form)
    return value


def _integer(name: str, default: str, *, minimum: int, maximum: int) -> int:
    form = f"a whole number from {minimum} to {maximum}"
    try:
        value = int(text(name, default))
    except ValueError as error:
        raise _wrong(name, form) from error
    if not minimum <= value <= maximum:
        raise _wrong(name, form)
    return value


def _wrong(name: str, form: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}: expected {form}")
