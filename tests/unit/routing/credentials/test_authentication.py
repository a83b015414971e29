from __future__ import annotations

from dataclasses import replace

import pytest

from relaybatch.http.errors import Forbidden, Unauthenticated
from routing.credentials.authentication import presented_value
from routing.credentials.credential import Credential, check_may_create, is_token

CREDENTIAL = Credential(
    owner="hash",
    kind="key",
    id="1",
    principal_kind="serviceaccount",
    principal_id="2",
    policy_id=None,
    project_id=None,
    team_id=None,
)


@pytest.mark.parametrize(
    ("value", "token"),
    [
        ("eyJh.eyJz.c2ln", True),
        ("eyJh.eyJz", False),
        ("eyJh.a.b.c", False),
        ("sk-rb-a.b.c", False),
        ("", False),
    ],
)
def test_a_token_is_recognized_by_its_form(value: str, token: bool) -> None:
    assert is_token(value) is token


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer sk-1"},
        {"authorization": "bearer   sk-1 "},
        {"x-api-key": " sk-1"},
        {"authorization": "Bearer sk-1", "x-api-key": "sk-1"},
        {"authorization": "Bearer ", "x-api-key": "sk-1"},
        {"authorization": "Bearer sk-1", "x-api-key": ""},
    ],
)
def test_either_header_carries_the_credential(headers: dict[str, str]) -> None:
    assert presented_value(headers) == "sk-1"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_credential"),
        ({"authorization": "", "x-api-key": " "}, "missing_credential"),
        ({"authorization": "Bearer"}, "missing_credential"),
        ({"authorization": "Basic dXNlcjpwYXNz"}, "invalid_credential"),
        ({"authorization": "sk-1"}, "invalid_credential"),
        ({"authorization": "Bearer sk-1", "x-api-key": "sk-2"}, "invalid_credential"),
        ({"authorization": "Basic sk-1", "x-api-key": "sk-1"}, "invalid_credential"),
        ({"authorization": "Bearer \xff", "x-api-key": "\xfe"}, "invalid_credential"),
    ],
)
def test_no_or_no_clear_credential_is_refused(headers: dict[str, str], code: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        presented_value(headers)
    assert refused.value.code == code
    assert "sk-1" not in refused.value.message


@pytest.mark.parametrize("code", ["no_policy", "policy_disabled", "project_disabled", "principal_disabled"])
def test_a_denial_code_forbids_creating(code: str) -> None:
    check_may_create(CREDENTIAL)
    with pytest.raises(Forbidden) as refused:
        check_may_create(replace(CREDENTIAL, denial_code=code))
    assert (refused.value.http_status, refused.value.code) == (403, code)
