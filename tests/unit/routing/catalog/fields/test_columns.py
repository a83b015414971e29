"""How values are stored in rows that are not saved: what differs, and which attributes are set."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from routing.catalog.fields.columns import (
    Column,
    EncryptedSecret,
    IncludedUsage,
    Reference,
    SecretSource,
    TextList,
    name_of,
)
from routing.models import User
from routing.secrets.encryption import decrypt

ROWS: dict[str, dict[str, Any]] = {"hosts": {"one": SimpleNamespace(name="one")}}
FIFTY = {"amount": 50, "currency": "USD", "unpriced_closes": False}
NO_USAGE = {"included_nanos": None, "included_currency": "", "unpriced_closes": False}


@pytest.mark.parametrize(
    ("column", "attributes", "value"),
    [
        (Column("a"), {"a": 1}, 2),
        (TextList("a"), {"a": ["x", "y"]}, ("y", "x")),
        (Reference("a", "hosts"), {"a": None}, "one"),
        (Reference("a", "hosts"), {"a": SimpleNamespace(name="other")}, None),
        (SecretSource("a", "b"), {"a": "NAME", "b": ""}, ("", "/file")),
        (EncryptedSecret("a"), {"a": None}, "secret"),
        (IncludedUsage("included_nanos"), NO_USAGE, FIFTY),
        (
            IncludedUsage("included_nanos"),
            NO_USAGE | {"included_nanos": 50, "included_currency": "USD"},
            None,
        ),
    ],
)
def test_a_value_differs_until_it_is_assigned(column: Column, attributes: dict[str, Any], value: Any) -> None:
    row = SimpleNamespace(**attributes)
    assert column.differs(row, value)
    assert set(column.assign(row, value, ROWS)) == set(attributes)
    assert not column.differs(row, value)


def test_a_secret_is_encrypted_and_compared_by_its_plain_text() -> None:
    row, column = SimpleNamespace(a=None), EncryptedSecret("a")
    column.assign(row, "secret", ROWS)
    assert decrypt(row.a) == b"secret"
    assert column.differs(row, "other")
    assert column.differs(row, None)
    assert not EncryptedSecret("a").differs(SimpleNamespace(a=None), None)


def test_a_secret_that_cannot_be_decrypted_any_more_differs() -> None:
    assert EncryptedSecret("a").differs(SimpleNamespace(a=b"nonsense"), "secret")


def test_a_user_is_named_by_the_username() -> None:
    assert name_of(User(username="ana")) == "ana"
    assert name_of(ROWS["hosts"]["one"]) == "one"
