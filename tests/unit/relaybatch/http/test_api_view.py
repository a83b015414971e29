"""A method that a route does not serve is rejected before any credential is checked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from django.test import RequestFactory
from rest_framework.authentication import BaseAuthentication
from rest_framework.response import Response

from relaybatch.http.api_view import MethodCheckBeforeAuth
from relaybatch.http.errors import Unauthenticated

if TYPE_CHECKING:
    from rest_framework.request import Request


class NobodyIsAuthenticated(BaseAuthentication):
    def authenticate(self, request: Request) -> NoReturn:
        raise Unauthenticated("no")


class View(MethodCheckBeforeAuth):
    authentication_classes = [NobodyIsAuthenticated]

    def get(self, request: Request) -> Response:
        return Response({})


def answer(method: str) -> Any:
    return View.as_view()(RequestFactory().generic(method, "/v1/x"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"])
def test_another_method_is_a_405_without_a_credential(method: str) -> None:
    response = answer(method)
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
    assert json.loads(response.content)["error"]["message"] == f"{method} is not allowed here."


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_method_that_is_served_needs_a_credential(method: str) -> None:
    assert answer(method).status_code == 401
