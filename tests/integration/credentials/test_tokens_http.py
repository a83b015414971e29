"""Tokens for a person who is logged in, through the whole HTTP surface."""

from __future__ import annotations

import base64
import json
import re
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from routing.credentials.credential import authenticate
from routing.credentials.tokens import mint_token
from routing.models import InferenceToken, Project, User
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import Settings

pytestmark = pytest.mark.django_db
TOKEN, REVOKE = "/api/auth/token", "/api/auth/token/revoke"


@pytest.fixture
def rows() -> SimpleNamespace:
    rows = make_catalog("http://127.0.0.1:9", suffix="1")
    rows.user = User.objects.create_user("ana", project=rows.project, policy=rows.policy)
    return rows


class Browser:
    """A logged-in person's: a session's cookie, and the CSRF token that a page of the admin hands out."""

    def __init__(self, user: User | None) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.client.get("/admin/login/")
        if user:
            self.client.force_login(user)

    @property
    def csrf(self) -> str:
        return self.client.cookies["csrftoken"].value

    def post(self, path: str, body: object = None, **headers: str) -> Any:
        sent = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        return self.client.post(
            path, sent, content_type="application/json", headers={"X-CSRFToken": self.csrf} | headers
        )


@pytest.fixture
def browser(rows: SimpleNamespace) -> Browser:
    return Browser(rows.user)


def error_of(response: Any) -> tuple[int, str]:
    assert response["Content-Type"] == "application/json"
    assert not InferenceToken.objects.exists()
    return response.status_code, response.json()["error"]["code"]


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({}, 3_600),
        ({"project": "project1", "ttl": "30m"}, 1_800),
        ({"ttl": 60}, 60),
        ({"ttl": 86_400}, 86_400),
        ({"project": None, "ttl": None}, 3_600),
        (b"", 3_600),
        (b'\xef\xbb\xbf{"ttl":60}', 60),
    ],
)
def test_a_logged_in_user_gets_a_token(
    rows: SimpleNamespace, browser: Browser, body: object, seconds: int
) -> None:
    response = browser.post(TOKEN, body)
    answer = response.json()
    assert (response.status_code, list(answer)) == (200, ["token", "jti", "expires_at", "project"])
    assert response["Cache-Control"] == "no-store"
    credential = authenticate(answer["token"], now=timezone.now())
    assert (credential.id, credential.owner) == (answer["jti"], f"user:{rows.user.pk}")
    assert answer["project"] == "project1"
    assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z", answer["expires_at"])
    expires_at = parse_datetime(answer["expires_at"])
    assert expires_at
    assert abs((expires_at - timezone.now()).total_seconds() - seconds) < 60


def test_it_takes_a_session_and_no_other_credential(rows: SimpleNamespace) -> None:
    nobody = Browser(None)
    response = nobody.post(TOKEN, **rows.headers)
    assert error_of(response) == (401, "missing_credential")
    assert response["WWW-Authenticate"] == "Bearer"


def test_it_takes_the_csrf_token_of_the_session(browser: Browser) -> None:
    response = browser.client.post(TOKEN, b"{}", content_type="application/json")
    assert error_of(response) == (403, "csrf_failed")
    assert error_of(browser.post(TOKEN, **{"X-CSRFToken": "x" * 32})) == (403, "csrf_failed")
    form = browser.client.post(TOKEN, {"project": "project1"})
    assert error_of(form) == (403, "csrf_failed")


def test_a_user_who_was_switched_off_is_logged_out(rows: SimpleNamespace, browser: Browser) -> None:
    User.objects.update(is_active=False)
    assert error_of(browser.post(TOKEN)) == (401, "missing_credential")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"ttl": 86_401}, "invalid_field"),
        ({"ttl": 0}, "invalid_field"),
        ({"ttl": "25h"}, "invalid_field"),
        ({"ttl": "soon"}, "invalid_field"),
        ({"ttl": True}, "invalid_field"),
        ({"ttl": 1.5}, "invalid_field"),
        ({"ttl": [3600]}, "invalid_field"),
        ({"project": 1}, "invalid_field"),
        ({"user": "root"}, "invalid_field"),
        (b"[]", "invalid_field"),
        (b"{", "invalid_json"),
        (b"\xff", "invalid_json"),
        (b'{"ttl": ' + b"9" * 400 + b"}", "invalid_field"),
    ],
)
def test_what_makes_no_sense_is_refused(browser: Browser, body: object, code: str) -> None:
    assert error_of(browser.post(TOKEN, body)) == (400, code)


def test_a_project_that_is_not_ones_own_is_refused_alike_whether_it_exists_or_not(
    rows: SimpleNamespace, browser: Browser
) -> None:
    Project.objects.create(name="other", team=rows.team)
    other, none = (browser.post(TOKEN, {"project": name}) for name in ("other", "none"))
    assert error_of(other) == error_of(none) == (403, "forbidden")
    assert other.content == none.content


def test_a_user_without_a_project_is_rejected(browser: Browser) -> None:
    User.objects.update(project=None)
    response = browser.post(TOKEN)
    assert error_of(response) == (403, "forbidden")
    assert "no project" in response.json()["error"]["message"]


def test_a_large_body_is_not_read(browser: Browser) -> None:
    assert error_of(browser.post(TOKEN, b" " * 10_001)) == (413, "body_too_large")
    form = browser.client.post(TOKEN, {"csrfmiddlewaretoken": "x" * 20_000})
    assert error_of(form) == (413, "body_too_large")


def test_an_unreadable_signing_key_is_a_503(
    rows: SimpleNamespace, browser: Browser, settings: Settings
) -> None:
    mint_token(rows.user, project=None, ttl_seconds=60, now=timezone.now())
    InferenceToken.objects.all().delete()
    settings.RELAY_MASTER_KEY = base64.b64encode(b"another key".ljust(32)).decode()
    assert error_of(browser.post(TOKEN)) == (503, "unavailable")


def test_only_posts_are_taken(browser: Browser) -> None:
    for path in (TOKEN, REVOKE):
        response = browser.client.get(path)
        assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("path", [REVOKE, "/api/auth/revoke", "/api/auth/revoke/"])
def test_one_token_or_all_are_revoked(browser: Browser, path: str) -> None:
    jti = browser.post(TOKEN).json()["jti"]
    browser.post(TOKEN)
    assert browser.post(path, {"jti": jti}).json() == {"revoked": 1}
    assert browser.post(path, {"jti": jti}).json() == {"revoked": 0}
    assert browser.post(path).json() == {"revoked": 1}
    assert not InferenceToken.objects.filter(revoked_at=None).exists()


def test_another_users_token_is_not_ones_own_to_revoke(rows: SimpleNamespace, browser: Browser) -> None:
    jti = browser.post(TOKEN).json()["jti"]
    other = Browser(User.objects.create_user("bob", project=rows.project))
    assert other.post(REVOKE, {"jti": jti}).json() == {"revoked": 0}
    assert other.post(REVOKE).json() == {"revoked": 0}
    assert other.post(REVOKE, {"jti": str(uuid.uuid4())}).json() == {"revoked": 0}
    assert InferenceToken.objects.filter(jti=jti, revoked_at=None).exists()


@pytest.mark.parametrize("body", [{"jti": None}, {"jti": "1"}, {"jit": str(uuid.uuid4())}])
def test_a_slip_does_not_revoke_everything(browser: Browser, body: object) -> None:
    browser.post(TOKEN)
    response = browser.post(REVOKE, body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_field")
    assert InferenceToken.objects.filter(revoked_at=None).exists()
