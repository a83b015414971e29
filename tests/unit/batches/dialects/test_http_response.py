"""A dialect's response on its way to the client: whole or streamed, plain or compressed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from batches.dialects.dialect_response import JSON_LINES_CONTENT_TYPE, DialectResponse
from batches.dialects.http_response import to_http_response
from relaybatch.http.errors import Conflict
from relaybatch.http.streaming import accepts_gzip

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = (b'{"a":1}\n', b'{"a":2}\n')


def streamed(accept_encoding: str) -> StreamingHttpResponse:
    request = RequestFactory().get("/", headers={"Accept-Encoding": accept_encoding})
    response = to_http_response(DialectResponse(iter(PARTS), content_type=JSON_LINES_CONTENT_TYPE), request)
    assert isinstance(response, StreamingHttpResponse)
    return response


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5, br", True),
        ("X-GZIP", True),
        ("gzip;q=1.000", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("gzipped", False),
    ],
)
def test_gzip_is_accepted_where_it_is_named_with_a_weight(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


def test_a_whole_body_has_a_length_and_is_never_compressed() -> None:
    request = RequestFactory().get("/", headers={"Accept-Encoding": "gzip"})
    response = to_http_response(DialectResponse(b"{}", status=202), request)
    assert isinstance(response, HttpResponse)
    assert (response.status_code, response.content, response["Content-Type"]) == (
        202,
        b"{}",
        "application/json",
    )
    assert "Content-Encoding" not in response


def test_an_empty_body_has_no_content_type() -> None:
    response = to_http_response(DialectResponse(b"", status=204), RequestFactory().get("/"))
    assert response.status_code == 204
    assert "Content-Type" not in response


def test_a_stream_goes_out_part_by_part() -> None:
    response = streamed("identity")
    assert list(response) == list(PARTS)
    assert (response["Content-Type"], response["Vary"]) == (JSON_LINES_CONTENT_TYPE, "Accept-Encoding")
    assert "Content-Encoding" not in response


def test_a_compressed_stream_can_be_read_after_each_part() -> None:
    response = streamed("gzip")
    assert (response["Content-Encoding"], response["Vary"]) == ("gzip", "Accept-Encoding")
    decoder = zlib.decompressobj(wbits=31)
    assert [decoder.decompress(part) for part in response] == [*PARTS, b""]
    assert decoder.eof


def test_an_error_in_the_first_part_is_raised_before_the_status_is_sent() -> None:
    def failing() -> Iterator[bytes]:
        for part in PARTS:
            if part:
                raise Conflict("not yet")
            yield part

    with pytest.raises(Conflict):
        to_http_response(DialectResponse(failing()), RequestFactory().get("/"))
