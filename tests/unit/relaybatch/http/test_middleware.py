"""The request's id: on every line written for the request, and on no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import StreamingHttpResponse
from django.test import RequestFactory

from relaybatch import log_format
from relaybatch.http.middleware import request_id

if TYPE_CHECKING:
    from collections.abc import Iterator


def streamed(seen: list[str]) -> Iterator[bytes]:
    for _ in range(3):
        seen.append(log_format.request_id.get())
        yield b"part"


def test_a_streamed_body_is_built_under_its_requests_id() -> None:
    seen: list[str] = []
    response = request_id(lambda _: StreamingHttpResponse(streamed(seen)))(RequestFactory().get("/"))
    assert isinstance(response, StreamingHttpResponse)
    assert list(response) == [b"part"] * 3
    assert seen == [response["request-id"]] * 3


def test_a_stream_that_its_reader_abandons_leaves_no_id_to_the_next_lines() -> None:
    response = request_id(lambda _: StreamingHttpResponse(streamed([])))(RequestFactory().get("/"))
    assert isinstance(response, StreamingHttpResponse)
    assert next(iter(response)) == b"part"
    assert log_format.request_id.get() == ""
