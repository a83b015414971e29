"""Calls of the usage routes, and who makes them, for the tests of usage over HTTP."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from routing.calls.call import Outcome, Target
from routing.calls.failures import Failure, FailureCode
from routing.credentials.relay_keys import hash_value
from tests.support.rows.catalog import make_catalog
from usage.models import UsageEvent

if TYPE_CHECKING:
    from datetime import datetime
    from types import SimpleNamespace

    from pytest_django import Settings


EVENTS, SUMMARY = "/v1/usage/events", "/v1/usage/summary"
ALL = {"events": "/api/usage/events", "summary": "/api/usage/summary", "series": "/api/usage/timeseries"}
BATCH = uuid.UUID(int=0xB)
ADMIN_TOKEN = "an-operators-token"
UNROUTED_OUTCOME = Outcome(
    target=Target(requested_model="nope"), failure=Failure(code=FailureCode.MODEL_NOT_FOUND, message="nope")
)


@pytest.fixture
def caller() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


@pytest.fixture
def admin_token(settings: Settings) -> dict[str, str]:
    settings.RELAY_ADMIN_TOKEN = ADMIN_TOKEN
    return {"Authorization": f"Bearer {ADMIN_TOKEN}"}


def owner_of(caller: SimpleNamespace) -> str:
    return hash_value(caller.relay_key_value)


def get(path: str, headers: dict[str, str], query: dict[str, Any] | None = None) -> Any:
    return Client().get(path, query or {}, headers=headers)


def body(path: str, headers: dict[str, str], query: dict[str, Any] | None = None) -> Any:
    answer = get(path, headers, query)
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


def set_event_time(event_id: uuid.UUID, *, at: datetime) -> None:
    UsageEvent.objects.filter(id=event_id).update(at=at)
