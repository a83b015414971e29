"""The table in the docstring of `routing.gate.breaker_signals`."""

from __future__ import annotations

import pytest

from routing.gate.breaker_signals import NONE, OK, BreakerSignal, breaker_signal
from routing.transport.response_body import UpstreamResponse
from tests.support.calls.admissions import CONNECTION_LOST, ERROR, FORBIDDEN, UNAUTHORIZED, throttled


@pytest.mark.parametrize(
    ("response", "signal"),
    [
        (UpstreamResponse(401), UNAUTHORIZED),
        (UpstreamResponse(401, connection_lost=True), UNAUTHORIZED),
        (UpstreamResponse(402), OK),
        (UpstreamResponse(403), FORBIDDEN),
        (UpstreamResponse(403, connection_lost=True), FORBIDDEN),
        (UpstreamResponse(500), BreakerSignal("error", status="500")),
        (UpstreamResponse(529), BreakerSignal("error", status="529")),
        (UpstreamResponse(0, connection_lost=True), CONNECTION_LOST),
        (UpstreamResponse(200, connection_lost=True), CONNECTION_LOST),
        (UpstreamResponse(429), OK),
        (UpstreamResponse(429, retry_after_seconds=5), OK),
        (UpstreamResponse(429, retry_after_seconds=6), throttled(6)),
        (UpstreamResponse(429, retry_after_seconds=0), OK),
        *[(UpstreamResponse(status), OK) for status in (200, 302, 400, 404, 408, 409, 422)],
        (UpstreamResponse(200, read_error="an event stream"), OK),
    ],
)
def test_the_signal_of_a_response(response: UpstreamResponse, signal: BreakerSignal) -> None:
    assert breaker_signal(response) == signal


@pytest.mark.parametrize(
    ("signal", "is_failure", "rejects_key"),
    [
        (NONE, False, False),
        (OK, False, False),
        (UNAUTHORIZED, True, True),
        (FORBIDDEN, True, True),
        (ERROR, True, False),
        (CONNECTION_LOST, True, False),
        (throttled(7), True, False),
    ],
)
def test_which_signals_are_failures_and_which_reject_the_key(
    signal: BreakerSignal, is_failure: bool, rejects_key: bool
) -> None:
    assert (signal.is_failure, signal.rejects_key) == (is_failure, rejects_key)
