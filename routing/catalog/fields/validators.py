"""Validators of single values. Each returns what is stored, or raises ValueError with a message of what is expected.

No message contains the value: it might be a secret in the wrong place.
"""

from __future__ import annotations

import re
from decimal import Decimal

from routing.hosts.headers import validate_auth_header, validate_header_name, validate_header_value
from routing.hosts.url import validate_base_url
from routing.secrets.reserved_env_vars import is_reserved
from routing.secrets.secret_files import validate_path

MAX_NANOS = 2**63 - 1
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,11})(\.[0-9]{1,40})?")
_INTEGER = re.compile(r"0|[1-9][0-9]*(_[0-9]+)*")
_USERNAME = re.compile(r"[\w.@+-]{1,150}")


def name(text: str) -> str:
    if not 1 <= len(text) <= 200 or not text.isprintable():
        raise ValueError("expected a name of 1-200 printable characters")
    return text


def name_without_separators(text: str) -> str:
    """A provider's or host's name: in `provider/model@host`, the first `/` and the last `@` are separators."""
    if "/" in text or "@" in text:
        raise ValueError("expected a name without / and @")
    return name(text)


def model_name(text: str) -> str:
    if not 1 <= len(text) <= 300 or "\x00" in text:
        raise ValueError("expected 1-300 characters, none of them NUL")
    return text


def alias(text: str) -> str:
    if "*" in text[:-1]:
        raise ValueError("expected at most one *, as the last character")
    return model_name(text)


def username(text: str) -> str:
    if not _USERNAME.fullmatch(text):
        raise ValueError("expected 1-150 letters, digits and @ . + - _")
    return text


def base_url(text: str) -> str:
    """Returned without trailing slashes."""
    return validate_base_url(text)


def environment_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,199}", text):
        raise ValueError("expected the name of an environment variable, as OPENAI_API_KEY")
    if is_reserved(text):
        raise ValueError("expected the variable of an upstream's key: this one is the deployment's own")
    return text


def file_path(text: str) -> str:
    return validate_path(text)


def query_name(text: str) -> str:
    """A query parameter's name. It has no `=`, since the admin writes `name=text`."""
    if "=" in text:
        raise ValueError("expected 1-1000 printable characters, none of them =")
    return query_text(text)


def query_text(text: str) -> str:
    if not 1 <= len(text) <= 1000 or not text.isprintable() or text != text.strip():
        raise ValueError("expected 1-1000 printable characters, and no blanks at the ends")
    return text


def header_name(text: str) -> str:
    return validate_header_name(text)


def auth_header(text: str) -> str:
    return validate_auth_header(text)


def header_value(text: str) -> str:
    return validate_header_value(text)


def secret(text: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError("expected the key itself: ASCII characters without blanks")
    return text


def currency(text: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", text):
        raise ValueError("expected a currency's three capital letters, as USD")
    return text


def nanos(text: str) -> int:
    """An amount of money, exactly, in nano-units: 2.50 is 2,500,000,000."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError('expected an amount that is not negative, in plain digits, as "2.50"')
    amount = Decimal(text)
    scaled = int(amount.scaleb(9))
    if Decimal(scaled).scaleb(-9) != amount:
        raise ValueError("expected an amount with at most 9 decimals")
    if scaled > MAX_NANOS:
        raise ValueError("expected an amount of at most 9223372036")
    return scaled


def integer(text: str, *, minimum: int, maximum: int) -> int:
    expected = f"expected a whole number from {minimum} to {maximum}"
    if not _INTEGER.fullmatch(text) or len(text) > 30:
        raise ValueError(expected)
    number = int(text)
    if not minimum <= number <= maximum:
        raise ValueError(expected)
    return number
