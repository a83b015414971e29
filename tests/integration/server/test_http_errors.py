"""What every route has in common: request ids, slashes, methods, error envelopes, and no HTML page of Django's."""

from __future__ import annotations

import json
import logging
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.test import Client, RequestFactory
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, ParseError, Throttled

from relaybatch.http import errors
from relaybatch.http.error_responses import exception_handler
from relaybatch.log_format import JsonFormatter, TextFormatter
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import submit

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.http import HttpResponse
    from pytest_django import Settings

ID = "01a22c0a-b662-7765-b65e-15b06b43400e"


@pytest.fixture
def rows(db: None) -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def handled(exception: Exception, path: str = "/v1/batches") -> HttpResponse:
    return exception_handler(exception, {"request": RequestFactory().get(path)})


def error_of(response: Any) -> dict[str, Any]:
    assert response["Content-Type"] == "application/json"
    error: dict[str, Any] = json.loads(response.content)["error"]
    return error


class StatusError(errors.ApiError):
    """An error with any status, for tables."""

    def __init__(self, status: int) -> None:
        super().__init__("why", code="word", param="requests[3].model")
        self.http_status = status


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, "invalid_request_error") for status in (400, 401, 404, 405, 409, 411, 413)),
        (403, "permission_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (503, "server_error"),
    ],
)
def test_an_error_has_openais_form_on_most_paths(status: int, kind: str) -> None:
    response = handled(StatusError(status))
    assert response.status_code == status
    assert json.loads(response.content) == {
        "error": {"message": "why", "type": kind, "param": "requests[3].model", "code": "word"}
    }


@pytest.mark.parametrize("path", ["/v1/messages/batches", "/v1/messages/batches/x/results", "/v1/messages"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, "invalid_request_error") for status in (400, 405, 411)),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
    ],
)
def test_an_error_has_anthropics_form_under_messages(path: str, status: int, kind: str) -> None:
    response = handled(StatusError(status), path)
    assert json.loads(response.content) == {
        "type": "error",
        "error": {"type": kind, "message": "why"},
        "request_id": "",
    }


@pytest.mark.parametrize(
    ("status", "said"), [(404, True), (409, True), (413, True), (400, False), (429, False)]
)
def test_sdks_are_told_not_to_retry_what_will_not_change(status: int, *, said: bool) -> None:
    assert handled(StatusError(status)).get("x-should-retry") == ("false" if said else None)


@pytest.mark.parametrize(("seconds", "header"), [(0.2, "1"), (5, "5"), (5.1, "6"), (600, "60")])
def test_a_retry_after_is_a_whole_number_of_at_most_60_seconds(seconds: float, header: str) -> None:
    error = errors.Unavailable("why")
    error.retry_after_seconds = seconds  # type: ignore[assignment]
    assert handled(error)["Retry-After"] == header


def test_no_retry_after_is_given_where_coming_back_does_not_help() -> None:
    assert "Retry-After" not in handled(errors.TooManyRequests("why"))


@pytest.mark.parametrize(
    ("exception", "status", "code"),
    [
        (NotAuthenticated(), 401, "missing_credential"),
        (AuthenticationFailed(), 401, "invalid_credential"),
        (PermissionDenied(), 403, "forbidden"),
        (ParseError(), 400, "invalid_json"),
        (OperationalError("secret"), 503, "database_unavailable"),
        (ValueError("secret"), 500, "internal_error"),
    ],
)
def test_every_exception_becomes_an_answer_that_says_nothing_of_its_inside(
    exception: Exception, status: int, code: str
) -> None:
    response = handled(exception)
    assert (response.status_code, error_of(response)["code"]) == (status, code)
    assert b"secret" not in response.content
    assert handled(Throttled()).status_code == 400


def _fail() -> None:
    try:
        json.loads("{}")["a prompt"]
    except KeyError as error:
        raise ValueError("another prompt") from error


def test_the_log_of_an_unexpected_exception_says_where_and_never_what(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try:
        _fail()
    except ValueError as error:
        handled(error)
    (record,) = caplog.records
    line = JsonFormatter().format(record)
    written = json.loads(line)
    assert (written["event"], written["method"]) == ("unexpected exception in a view", "GET")
    assert written["exception"].startswith("ValueError from KeyError at ")
    assert "test_http_errors.py" in written["exception"]
    assert "prompt" not in line


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/nothing", "/v1/batches/x/y/z", "/v1/chat/completions", "/x"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_an_unknown_path_is_a_json_404_without_a_credential(client: Client, path: str, method: str) -> None:
    response = client.generic(method, path)
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/", "/v1/messages/batches/x/y"])
def test_an_unknown_path_under_messages_has_its_envelope(client: Client, path: str) -> None:
    body = json.loads(client.get(path).content)
    assert (body["type"], body["error"]["type"]) == ("error", "not_found_error")
    assert body["request_id"].startswith("req_")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/batches", "GET, POST, HEAD"),
        ("DELETE", "/v1/batches", "GET, POST, HEAD"),
        ("OPTIONS", "/v1/batches", "GET, POST, HEAD"),
        ("POST", f"/v1/batches/{ID}", "GET, DELETE, HEAD"),
        ("PATCH", f"/v1/batches/{ID}", "GET, DELETE, HEAD"),
        ("POST", f"/v1/batches/{ID}/results", "GET, HEAD"),
        ("GET", f"/v1/batches/{ID}/cancel", "POST"),
        ("FOO", f"/v1/batches/{ID}/cancel/", "POST"),
        ("PUT", "/v1/messages/batches", "GET, POST, HEAD"),
        ("POST", f"/v1/messages/batches/msgbatch_{ID}", "GET, DELETE, HEAD"),
        ("DELETE", f"/v1/messages/batches/msgbatch_{ID}/results", "GET, HEAD"),
        ("GET", f"/v1/messages/batches/msgbatch_{ID}/retry", "POST"),
        ("OPTIONS", "/v1/models", "GET, HEAD"),
        ("POST", "/v1/usage/events", "GET, HEAD"),
        ("OPTIONS", "/api/usage/summary", "GET, HEAD"),
        ("OPTIONS", "/api/auth/token", "POST"),
        ("GET", "/api/auth/token/revoke", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("DELETE", "/readyz/", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_a_json_405_that_names_the_right_ones(
    client: Client, method: str, path: str, allowed: str
) -> None:
    response = client.generic(method, path)
    assert (response.status_code, response["Allow"]) == (405, allowed)
    known = "code" if "messages" not in path else "type"
    assert error_of(response)[known] == {"code": "method_not_allowed", "type": "invalid_request_error"}[known]


def test_a_trailing_slash_is_optional_on_every_route(client: Client, rows: SimpleNamespace) -> None:
    batch = submit(rows)
    paths = ("/v1/batches", f"/v1/batches/{batch.id}", f"/v1/batches/{batch.id}/results", "/healthz")
    for path in paths:
        bare = client.get(f"{path}?dialect=relay", headers=rows.headers)
        slashed = client.get(f"{path}/?dialect=relay", headers=rows.headers)
        assert (slashed.status_code, slashed.getvalue()) == (200, bare.getvalue())
    body = b'{"shape":"openai","requests":[{"model":"m"}]}'
    assert client.post("/v1/batches/", body, content_type="x/y", headers=rows.headers).status_code == 202
    assert client.post(f"/v1/batches/{batch.id}/cancel/", headers=rows.headers).status_code == 200


@pytest.mark.parametrize("header", ["Authorization", "x-api-key"])
def test_a_credential_comes_in_either_header(client: Client, rows: SimpleNamespace, header: str) -> None:
    value = f"Bearer {rows.relay_key_value}" if header == "Authorization" else rows.relay_key_value
    assert client.get("/v1/batches?dialect=relay", headers={header: value}).status_code == 200


@pytest.mark.parametrize("value", ["sk-rb-unknown", "é", "\x7f", "x" * 5000])
def test_an_unknown_credential_is_a_401(client: Client, rows: SimpleNamespace, value: str) -> None:
    response = client.get("/v1/batches", headers={"x-api-key": value})
    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
    assert error_of(response)["code"] == "invalid_credential"


def test_every_answer_carries_its_id_twice_and_so_do_its_log_lines(
    client: Client, rows: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="relaybatch.access")
    ids = []
    for path in (
        "/v1/batches?dialect=relay",
        "/v1/none?key=secret",
        f"/v1/batches/{ID}",
        "/healthz",
        "/admin/none",
    ):
        response = client.get(path, headers=rows.headers)
        assert response["request-id"] == response["x-request-id"]
        ids.append(response["request-id"])
    assert len(set(ids)) == 5
    assert all(uuid.UUID(hex=identifier.removeprefix("req_")).version == 7 for identifier in ids)
    lines = [JsonFormatter().format(record) for record in caplog.records]
    served = [json.loads(line) for line in lines]
    assert {line["event"] for line in served} == {"request served"}
    assert [(line["method"], line["path"], line["status"]) for line in served] == [
        ("GET", "/v1/batches", 200),
        ("GET", "/v1/none", 404),
        ("GET", f"/v1/batches/{ID}", 404),
        ("GET", "/healthz", 200),
        ("GET", "/admin/none", 302),
    ]
    assert all(line["ms"] >= 0 for line in served)
    assert "secret" not in "".join(lines)


def test_a_line_break_in_a_path_makes_no_second_log_line(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="relaybatch.access")
    client.get("/v1/x%0Aforged%20line")
    (record,) = caplog.records
    line = TextFormatter().format(record)
    assert line.endswith(" method=GET path=/v1/x%0Aforged%20line")
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    "path", ["/v1/%00", "/v1/batches/%00%ff", "/v1/%F0%28%8C%BC", "/v1/" + "x/" * 500, "/v1//"]
)
def test_odd_paths_are_a_404_in_json(client: Client, rows: SimpleNamespace, path: str) -> None:
    response = client.get(path, headers=rows.headers)
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


def test_an_unacceptable_host_is_a_json_400(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True  # makes Django check the host
    response = Client(raise_request_exception=False).get("/v1/batches", headers={"host": "evil.example"})
    assert (response.status_code, error_of(response)["code"]) == (400, "bad_request")


def test_too_many_query_parameters_are_a_json_400(client: Client, rows: SimpleNamespace) -> None:
    query = "&".join(f"p{n}=1" for n in range(2000))
    response = client.get(f"/v1/batches?{query}", headers=rows.headers)
    assert response.status_code == 400
    assert error_of(response)["type"] == "invalid_request_error"
