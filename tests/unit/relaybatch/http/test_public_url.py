"""Links to the service have a trusted origin: PUBLIC_URL, or a host of ALLOWED_HOSTS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import RequestFactory

from relaybatch.http.errors import InvalidRequest
from relaybatch.http.public_url import public_origin

if TYPE_CHECKING:
    from pytest_django import Settings


def test_public_url_is_used_whatever_host_the_request_names(settings: Settings) -> None:
    settings.PUBLIC_URL = "https://batches.example"
    assert public_origin(RequestFactory().get("/", headers={"host": "evil.example"})) == (
        "https://batches.example"
    )


@pytest.mark.parametrize(
    ("secure", "origin"), [(False, "http://a.example:8080"), (True, "https://a.example:8080")]
)
def test_without_it_the_requests_own_origin_is_used(settings: Settings, origin: str, *, secure: bool) -> None:
    settings.PUBLIC_URL = ""
    settings.ALLOWED_HOSTS = ["a.example"]
    request = RequestFactory().get("/", secure=secure, headers={"host": "a.example:8080"})
    assert public_origin(request) == origin


def test_a_host_that_is_not_allowed_gets_no_link(settings: Settings) -> None:
    settings.PUBLIC_URL = ""
    settings.ALLOWED_HOSTS = ["a.example"]
    with pytest.raises(InvalidRequest, match="PUBLIC_URL") as rejected:
        public_origin(RequestFactory().get("/", headers={"host": "evil.example"}))
    assert (rejected.value.code, rejected.value.param) == ("unknown_host", "Host")
    assert "evil" not in rejected.value.message
