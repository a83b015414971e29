from __future__ import annotations

import pytest

from routing.calls.failures import CallFailed
from routing.upstream.request_model import requested_model


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (b'{"model": "m"}', "m"),
        (b'{"messages": [], "model": "a\\u0062c"}', "abc"),
        (b'{"model": "m", "stream": false}', "m"),
        (b'{"model": "m", "stream": null}', "m"),
        (b'{"model": "m", "metadata": {"model": "other"}}', "m"),
    ],
)
def test_the_model_of_a_body(body: bytes, model: str) -> None:
    assert requested_model(body) == model


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"nonsense", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "model is missing"),
        (b'{"model": null}', "model is missing"),
        (b'{"model": ""}', "non-empty string"),
        (b'{"model": 4}', "non-empty string"),
        (b'{"model": "a", "model": "b"}', "given twice"),
        (b'{"model": "a", "MODEL": "b"}', "given twice"),
        (b'{"model": "a", "stream": true}', "stream must be false"),
    ],
)
def test_what_no_adapter_could_send_is_an_invalid_item(body: bytes, message: str) -> None:
    with pytest.raises(CallFailed) as failed:
        requested_model(body)
    assert failed.value.failure.code == "invalid_item"
    assert message in failed.value.failure.message


def test_of_a_name_that_is_too_long_only_the_beginning_is_decoded() -> None:
    name = "m" * 1_000_000
    found = requested_model(b'{"model": "%b"}' % name.encode())
    assert name.startswith(found)
    assert 701 < len(found) < 20_000
