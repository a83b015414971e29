"""What an ASGI application receives of a body, message by message."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from relaybatch.http.asgi_limits import BoundedBody

LIMIT = 10
LEFT = {"type": "http.disconnect"}


def piece(size: int, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


def seen(*sent: dict[str, Any], seconds: float = 30) -> tuple[list[dict[str, Any]], int]:
    """The messages up to the end of the body, and how many the server still has after one more was requested."""

    async def read_all() -> list[Any]:
        body = BoundedBody(receive, limit_bytes=LIMIT, drain_seconds=seconds)
        messages = [await body()]
        while messages[-1].get("more_body"):
            messages.append(await body())
        asking = asyncio.create_task(body())
        await asyncio.sleep(0)
        asking.cancel()
        return messages

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        return await asyncio.Future()

    waiting = list(sent)
    return asyncio.run(read_all()), len(waiting)


@pytest.mark.parametrize(
    "sent",
    [
        [piece(0, more=False)],
        [piece(LIMIT, more=False)],
        [piece(4), piece(6), piece(0, more=False)],
        [piece(LIMIT), piece(1, more=False)],
        [piece(4), LEFT],
        [{"type": "http.request"}],
        [{"type": "lifespan.startup"}],
    ],
)
def test_a_body_up_to_one_byte_over_the_limit_passes_as_it_is(sent: list[dict[str, Any]]) -> None:
    assert seen(*sent) == (sent, 0)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([piece(50, more=False)], [piece(11, more=False)]),
        ([piece(4), piece(8, more=False)], [piece(4), piece(7, more=False)]),
        ([piece(11), piece(1), piece(8, more=False)], [piece(11), piece(0, more=False)]),
        ([piece(12), piece(0), piece(9), piece(9, more=False)], [piece(11, more=False)]),
    ],
)
def test_a_larger_one_ends_there_and_its_rest_is_drained(
    sent: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    assert seen(*sent) == (expected, 0)


def test_no_more_than_the_limit_is_drained() -> None:
    assert seen(piece(12), piece(9), piece(1), piece(1), piece(1)) == ([piece(11, more=False)], 2)


def test_a_client_that_leaves_while_its_rest_is_drained_has_left() -> None:
    assert seen(piece(12), piece(1), LEFT) == ([LEFT], 0)


def test_a_client_that_falls_silent_while_its_rest_is_drained_is_answered() -> None:
    assert seen(piece(12), piece(1), seconds=0) == ([piece(11, more=False)], 0)


@pytest.mark.parametrize(
    ("sent", "untaken"), [([piece(9, more=False), LEFT], 0), ([piece(12), piece(10), piece(1), LEFT], 2)]
)
def test_a_disconnect_is_received_once_the_whole_body_was_read(
    sent: list[dict[str, Any]], untaken: int
) -> None:
    assert seen(*sent)[1] == untaken
