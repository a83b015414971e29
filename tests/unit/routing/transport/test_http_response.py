"""What the first bytes of a response say. Whole responses are tested in tests/integration/upstream/."""

from __future__ import annotations

import pytest

from routing.transport.http_response import find_final_status, is_early_rejection


@pytest.mark.parametrize(
    ("received", "status"),
    [
        (b"", None),
        (b"HTT", None),
        (b"HTTP/1.1 20", None),
        (b"HTTP/1.1 200", 200),
        (b"HTTP/1.1 429 Too Many\r\n", 429),
        (b"HTTP/1.1 100 Continue\r\n", None),
        (b"HTTP/1.1 100 Continue\r\n\r\n", None),
        (b"HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\nHTTP/1.1 503 Busy\r\n", 503),
        (b"HTTP/1.1 100 A\n\nHTTP/1.1 102 B\n\nHTTP/1.1 204 C\n", 204),
        (b"HTTP/1.1 20\r\n", 0),
        (b"SSH-2.0-server\r\n", 0),
        (b"\r\n", 0),
    ],
)
def test_the_final_status_is_found_behind_interim_responses(received: bytes, status: int | None) -> None:
    assert find_final_status(received) == status


@pytest.mark.parametrize(
    ("status", "expected"), [(None, False), (0, False), (200, False), (301, True), (503, True)]
)
def test_only_a_rejection_may_come_before_the_request_is_read(status: int | None, expected: bool) -> None:
    assert is_early_rejection(status) is expected
