"""Which errors of PostgreSQL are an outage, and are retried: what the server is, and not what it was asked."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection

from relaybatch.db import outage
from relaybatch.db.isolation import run_isolated
from relaybatch.db.outage import DATABASE_UNAVAILABLE, is_row_error, retry_during_outage, stop_retrying

OUTAGES = {
    "08006": "the connection broke",
    "25006": "read-only after a failover",
    "28P01": "a new password",
    "40P01": "a deadlock",
    "53100": "disk full",
    "53200": "out of memory",
    "53300": "too many connections",
    "55000": "not in the right state: recovering, or closed to connections",
    "57014": "cancelled, by the server's own time-out too",
    "57P01": "shutting down",
    "57P02": "another session crashed the server",
    "57P03": "starting up",
    "57P04": "the database was dropped",
    "57P05": "the session was idle for too long",
    "58030": "the disk does not read or write",
    "XX000": "an internal error",
    "XX001": "a page is broken",
}
FAULTS = {"22003": "a number out of range", "23505": "there twice", "42601": "not SQL"}


def raised(code: str) -> tuple[Exception, Exception]:
    """As psycopg raises it, and as Django's cursors do."""
    error = psycopg.errors.lookup(code)("reported")
    with pytest.raises(DatabaseError) as wrapped, connection.wrap_database_errors:
        raise error
    return error, wrapped.value


@pytest.mark.parametrize("code", OUTAGES, ids=lambda code: OUTAGES[code])
def test_is_retried(code: str) -> None:
    assert all(isinstance(error, DATABASE_UNAVAILABLE) for error in raised(code))


@pytest.mark.parametrize("code", FAULTS, ids=lambda code: FAULTS[code])
def test_is_not_retried(code: str) -> None:
    assert not any(isinstance(error, DATABASE_UNAVAILABLE) for error in raised(code))


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The event of `stop_retrying`, for one test."""
    event = threading.Event()
    monkeypatch.setattr(outage, "_stop_requested", event)
    return event


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(outage, "MAX_PAUSE_SECONDS", 0.002)


class Failing:
    """An action that fails so often, and then returns its arguments."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, *args: object, **kwargs: object) -> object:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return args, kwargs


@pytest.mark.usefixtures("stopping")
def test_an_action_is_called_again_with_its_arguments_until_the_database_answers() -> None:
    action = Failing(*[psycopg.OperationalError("away")] * 5, OperationalError("django's"))
    assert retry_during_outage(action, 1, two=2) == ((1,), {"two": 2})
    assert action.calls == 7


@pytest.mark.usefixtures("stopping")
def test_what_is_no_outage_is_raised_at_once() -> None:
    action = Failing(psycopg.errors.UniqueViolation("there twice"))
    with pytest.raises(psycopg.errors.UniqueViolation):
        retry_during_outage(action)
    assert action.calls == 1


def test_a_process_that_must_end_raises_the_outage_and_does_not_wait(stopping: threading.Event) -> None:
    stop_retrying()
    assert stopping.is_set()
    action = Failing(psycopg.OperationalError("away"))
    with pytest.raises(psycopg.OperationalError):
        retry_during_outage(action)
    assert action.calls == 1


def test_one_that_waits_already_is_woken(monkeypatch: pytest.MonkeyPatch, stopping: threading.Event) -> None:
    monkeypatch.setattr(outage, "FIRST_PAUSE_SECONDS", 60.0)
    is_waiting, wait = threading.Event(), stopping.wait

    def note_and_wait(seconds: float) -> bool:
        is_waiting.set()
        return wait(seconds)

    monkeypatch.setattr(stopping, "wait", note_and_wait)
    action = Failing(*[psycopg.OperationalError("away")] * 2)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(retry_during_outage, action)
        assert is_waiting.wait(timeout=10)
        stop_retrying()
        with pytest.raises(psycopg.OperationalError):
            waiting.result(timeout=10)
    assert action.calls == 2


@pytest.mark.parametrize("code", ["54000", "54023", "XX001", "XX002"])
def test_an_error_about_the_rows_is_of_the_class_of_an_outage_and_is_none(code: str) -> None:
    assert all(isinstance(error, DATABASE_UNAVAILABLE) and is_row_error(error) for error in raised(code))


@pytest.mark.parametrize("code", ["08006", "57P01", "53100", "XX000", "25006"])
def test_an_outage_is_not_about_the_rows(code: str) -> None:
    assert not any(is_row_error(error) for error in raised(code))


def test_an_error_without_a_code_is_an_outage() -> None:
    assert not is_row_error(psycopg.OperationalError("the connection broke"))


def test_a_step_that_fails_is_logged_with_its_fields_and_the_next_one_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran: list[str] = []
    assert not run_isolated("first", Failing(ValueError("secret")), batch_id="b")
    assert run_isolated("second", lambda: ran.append("second"))
    (record,) = caplog.records
    assert (record.getMessage(), vars(record)["step"], vars(record)["batch_id"]) == (
        "step failed",
        "first",
        "b",
    )
    assert ran == ["second"]


def test_an_outage_ends_the_steps() -> None:
    with pytest.raises(OperationalError):
        run_isolated("first", Failing(OperationalError("away")))


def test_an_error_about_the_rows_ends_only_its_step() -> None:
    assert not run_isolated("first", Failing(psycopg.errors.DataCorrupted("a page is broken")))
