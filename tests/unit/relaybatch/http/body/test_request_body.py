"""A body is read up to its limit, plain, chunked or gzip; the rest of a rejected one is drained."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pytest
from django.test import RequestFactory

from relaybatch.http.body.request_body import RequestBody, read_body
from relaybatch.http.errors import ApiError, InvalidRequest, LengthRequired, TooLarge

LIMIT = 1000


class Stream(io.BytesIO):
    """A connection's input that counts bytes, and may break."""

    taken = 0
    broken = False

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self.taken += len(piece)
        if self.broken and not piece:
            raise ConnectionResetError
        return piece


def request_with(body: bytes, **environ: Any) -> Any:
    request = RequestFactory().post("/v1/batches", data=b"", content_type="text/plain")
    request.META.update({"wsgi.input": Stream(body), "CONTENT_LENGTH": str(len(body))} | environ)
    return request


def chunked(body: bytes, **environ: Any) -> Any:
    return request_with(body, CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked", **environ)


def read(request: Any, too_large: type[ApiError] = InvalidRequest) -> bytes:
    return bytes(read_body(request, limit_bytes=LIMIT, too_large=too_large))


def test_a_body_is_read_whatever_its_content_type() -> None:
    assert read(request_with(b"{}", CONTENT_TYPE="application/x-www-form-urlencoded")) == b"{}"


def test_a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_not() -> None:
    assert len(read(request_with(b"x" * LIMIT))) == LIMIT
    with pytest.raises(InvalidRequest) as rejected:
        read(request_with(b"x" * (LIMIT + 1)))
    assert (rejected.value.code, rejected.value.message) == (
        "body_too_large",
        "The body is larger than 1000 bytes.",
    )


def test_a_collection_may_answer_413_to_a_large_body() -> None:
    with pytest.raises(TooLarge):
        read(request_with(b"x" * (LIMIT + 1)), too_large=TooLarge)


def test_nothing_is_read_of_a_body_that_announces_too_much() -> None:
    request = request_with(b"x" * (LIMIT + 1))
    with pytest.raises(InvalidRequest):
        read(request)
    assert request.META["wsgi.input"].taken == 0


def test_a_chunked_body_is_read_to_its_end() -> None:
    assert read(chunked(b"{}", **{"wsgi.input_terminated": True})) == b"{}"


def test_a_chunked_body_over_the_limit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="larger than 1000 bytes"):
        read(chunked(b"x" * (LIMIT + 1), **{"wsgi.input_terminated": True}))


def test_a_server_that_cannot_tell_a_chunked_bodys_end_says_411() -> None:
    with pytest.raises(LengthRequired, match="Content-Length"):
        read(chunked(b"{}"))


def test_a_body_without_a_length_is_empty() -> None:
    assert read(request_with(b"", CONTENT_LENGTH="")) == b""


def test_a_body_that_ends_before_its_length_is_refused() -> None:
    with pytest.raises(InvalidRequest) as rejected:
        read(request_with(b"{", CONTENT_LENGTH="2"))
    assert rejected.value.code == "incomplete_body"


def test_a_connection_that_breaks_in_the_middle_is_a_body_that_ended_too_early() -> None:
    request = request_with(b"{", CONTENT_LENGTH="2")
    request.META["wsgi.input"].broken = True
    with pytest.raises(InvalidRequest) as rejected:
        read(request)
    assert rejected.value.code == "incomplete_body"


@pytest.mark.parametrize("name", ["gzip", "GZip", "x-gzip"])
def test_a_gzipped_body_is_decoded(name: str) -> None:
    assert read(request_with(gzip.compress(b'{"a":1}'), HTTP_CONTENT_ENCODING=name)) == b'{"a":1}'


def test_several_gzip_members_are_one_body() -> None:
    body = gzip.compress(b'{"a"') + gzip.compress(b":1}")
    assert read(request_with(body, HTTP_CONTENT_ENCODING="gzip")) == b'{"a":1}'


def test_a_large_gzipped_body_comes_out_whole_in_steps() -> None:
    body = bytes(range(256)) * 8192
    request = request_with(gzip.compress(body), HTTP_CONTENT_ENCODING="gzip")
    assert bytes(read_body(request, limit_bytes=len(body), too_large=InvalidRequest)) == body


def test_a_gzip_bomb_stops_at_the_limit() -> None:
    request = request_with(gzip.compress(bytes(50_000_000)), HTTP_CONTENT_ENCODING="gzip")
    with pytest.raises(InvalidRequest, match="larger than 1000 bytes"):
        read(request)


def test_a_gzip_of_more_than_ten_thousand_members_is_refused() -> None:
    members = [gzip.compress(b"{"), gzip.compress(b"}"), *[gzip.compress(b"")] * 9_998]

    def decoded(*parts: bytes) -> bytes:
        request = request_with(b"".join(parts), HTTP_CONTENT_ENCODING="gzip")
        return bytes(read_body(request, limit_bytes=10**6, too_large=InvalidRequest))

    assert decoded(*members) == b"{}"
    with pytest.raises(InvalidRequest, match="more than 10000 members"):
        decoded(*members, members[-1])


def test_an_endless_row_of_empty_gzip_members_stops_too() -> None:
    request = request_with(gzip.compress(b"") * 20_000, HTTP_CONTENT_ENCODING="gzip")
    with pytest.raises(InvalidRequest, match="far more compressed bytes"):
        read(request)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"no gzip at all", "cannot be decoded"),
        (gzip.compress(b"{}", mtime=0)[:-3], "ends too early"),
        (gzip.compress(b"{}", mtime=0) + b"rest", "cannot be decoded"),
    ],
)
def test_a_broken_gzip_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        read(request_with(body, HTTP_CONTENT_ENCODING="gzip"))


@pytest.mark.parametrize("name", ["br", "deflate", "zstd", "gzip, gzip"])
def test_other_encodings_are_named_as_the_fault(name: str) -> None:
    with pytest.raises(InvalidRequest) as rejected:
        read(request_with(b"{}", HTTP_CONTENT_ENCODING=name))
    assert rejected.value.param == "Content-Encoding"


def test_the_rest_of_a_rejected_body_is_drained_up_to_a_limit() -> None:
    request = request_with(b"x" * 3_000_000)
    RequestBody.of(request).drain(limit_bytes=1_000_000, seconds=10)
    assert 1_000_000 <= request.META["wsgi.input"].taken < 1_300_000


def test_draining_stops_where_the_client_stopped() -> None:
    request = request_with(b"x", CONTENT_LENGTH="100")
    RequestBody.of(request).drain(limit_bytes=100, seconds=10)
    assert request.META["wsgi.input"].taken == 1


def test_draining_takes_no_longer_than_it_is_given() -> None:
    request = request_with(b"x" * 100)
    RequestBody.of(request).drain(limit_bytes=100, seconds=0)
    assert request.META["wsgi.input"].taken == 0
