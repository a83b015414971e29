"""A worker reconnects soon to a broker that is back."""

from __future__ import annotations

import pytest

from relaybatch.celery import app


class TriedEnoughError(Exception):
    pass


def test_a_worker_looks_every_second_whether_the_broker_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a long outage: with Celery's own backoff, the 20th retry waits half a minute."""
    pauses: list[float] = []

    def note(_: Exception, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 20:
            raise TriedEnoughError

    monkeypatch.setattr("kombu.utils.functional.sleep", lambda _: None)
    with app.connection_for_read("redis://127.0.0.1:1/0") as connection, pytest.raises(TriedEnoughError):
        connection.ensure_connection(note)
    assert pauses == [1.0] * 20
