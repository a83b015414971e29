"""Typed readers of environment variables.

An invalid value raises ImproperlyConfigured, with one line that names the variable and what is expected, but not the
value.
"""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_DIGITS = re.compile(r"[0-9]{1,20}")

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})
# The standard or the URL-safe alphabet; the padding may be missing.
BASE64_OF_32_BYTES = re.compile(r"[A-Za-z0-9+/_-]{43}=?")


_variables_read: set[str] = set()


def variables_read() -> frozenset[str]:
    """Names that this process has read so far. Once the settings are loaded: all that a deployment can set."""
    return frozenset(_variables_read)


def text(name: str, default: str = "") -> str:
    """Return the variable's value; an empty one counts as unset."""
    _variables_read.add(name)
    return os.environ.get(name, "") or default


def secret(name: str) -> str:
    """Return the variable, or the content of the file that `<name>_FILE` names, without its final newline."""
    _variables_read.add(name)
    path = os.environ.get(f"{name}_FILE", "")
    if not path:
        return text(name)
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise invalid_variable(f"{name}_FILE", "the path of a readable text file") from error


def integer(name: str, default: int, *, minimum: int, maximum: int = 2**53) -> int:
    return _integer(name, str(default), minimum=minimum, maximum=maximum)


def optional_integer(name: str, *, minimum: int, maximum: int = 2**53, unset_word: str = "") -> int | None:
    """Return None when unset, or when the value is `unset_word`."""
    raw = text(name)
    if not raw or raw == unset_word:
        return None
    return _integer(name, raw, minimum=minimum, maximum=maximum, or_word=unset_word)


def flag(name: str) -> bool:
    raw = text(name).strip().lower()
    if raw in TRUE:
        return True
    if raw in FALSE:
        return False
    raise invalid_variable(name, "one of on, off, true, false, yes, no, 1, 0")


def choice(name: str, default: str, options: tuple[str, ...]) -> str:
    raw = text(name, default)
    if raw not in options:
        raise invalid_variable(name, f"one of {', '.join(options)}")
    return raw


def currency(name: str, default: str) -> str:
    raw = text(name, default)
    if not re.fullmatch(r"[A-Z]{3}", raw):
        raise invalid_variable(name, "a currency's three capital letters, as USD")
    return raw


def comma_separated(name: str) -> list[str]:
    """Return a list, split at commas, without spaces around the parts."""
    return [part.strip() for part in text(name).split(",") if part.strip()]


def certificate_files(name: str) -> tuple[str, ...]:
    """Return the paths of PEM files with certificates: the named file, or those of a folder. Empty when unset."""
    named = text(name)
    files = _files_of(Path(named)) if named else []
    found = tuple(str(file) for file in files if _holds_certificates(file))
    if named and not found:
        raise invalid_variable(
            name, "the path of a file of certificates in PEM form, or of a folder of such files"
        )
    return found


def folders(name: str) -> list[str]:
    """Return a list, split as in PATH. At least one of the folders must exist."""
    listed = [part for part in text(name).split(os.pathsep) if part]
    if listed and not any(Path(part).is_dir() for part in listed):
        raise invalid_variable(name, f"the path of a folder, or several with {os.pathsep} between them")
    return listed


def required(name: str, value: str, *, expected: str) -> str:
    if not value:
        raise invalid_variable(name, expected)
    return value


def master_keys(name: str, value: str) -> str:
    """Return the value unchanged, after a check that each key is 32 bytes in base64. It may be empty."""
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if not all(BASE64_OF_32_BYTES.fullmatch(part) for part in parts):
        raise invalid_variable(name, "32 bytes in base64, or several by commas")
    return value


def _files_of(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir()) if path.is_dir() else [path]
    except OSError:
        return []


def _holds_certificates(path: Path) -> bool:
    try:
        if path.is_file():
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
            return True
    except (OSError, ValueError):  # also ssl.SSLError
        pass
    return False


def _integer(name: str, default: str, *, minimum: int, maximum: int, or_word: str = "") -> int:
    expected = f"a whole number from {minimum} to {maximum}{or_word and f', or {or_word}'}"
    digits = text(name, default)
    if not _DIGITS.fullmatch(digits):
        raise invalid_variable(name, expected)
    value = int(digits)
    if not minimum <= value <= maximum:
        raise invalid_variable(name, expected)
    return value


def invalid_variable(name: str, expected: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}: expected {expected}")
