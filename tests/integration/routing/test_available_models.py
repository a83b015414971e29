"""`GET /v1/models`: what the caller's policy grants and its host keys reach, in OpenAI's list form."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from routing.models import Binding, Host, HostKey, Model, Policy, Provider, RelayKey
from tests.support.rows.catalog import make_catalog

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
ALL = ["echo-1", "echo-1-embeddings", "echo-1-messages", "echo-1-responses"]


@pytest.fixture
def catalog() -> SimpleNamespace:
    return make_catalog("http://127.0.0.1:9")


def answer(catalog: SimpleNamespace, path: str = "/v1/models") -> Any:
    response = Client().get(path, headers=catalog.headers)
    assert response.status_code == 200
    return response.json()


def names(catalog: SimpleNamespace) -> list[str]:
    return [model["id"] for model in answer(catalog)["data"]]


def test_it_is_openais_list(catalog: SimpleNamespace) -> None:
    body = answer(catalog, "/v1/models/")
    assert body["object"] == "list"
    first = body["data"][0]
    assert abs(first.pop("created") - time.time()) < 60
    assert first == {"id": "echo-1", "object": "model", "owned_by": catalog.provider.name}


def test_no_grants_grant_all_that_the_keys_reach(catalog: SimpleNamespace) -> None:
    assert names(catalog) == ALL
    HostKey.objects.update(enabled=False)
    assert names(catalog) == []


def test_a_key_whose_value_only_the_workers_have_reaches_as_much(catalog: SimpleNamespace) -> None:
    HostKey.objects.update(secret_encrypted=None, env_name="NOT_SET_HERE")
    assert names(catalog) == ALL


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ("{provider}", ALL),
        ("{provider}/echo-1", ["echo-1"]),
        ("@{host}", ALL),
        ("{provider}/echo-1@{host}", ["echo-1"]),
        ("elsewhere", []),
        ("@elsewhere", []),
    ],
)
def test_grants_decide(catalog: SimpleNamespace, grant: str, expected: list[str]) -> None:
    written = grant.format(provider=catalog.provider.name, host=catalog.host.name)
    Policy.objects.update(models_granted=[written])
    assert names(catalog) == expected


def test_what_is_disabled_is_left_out(catalog: SimpleNamespace) -> None:
    Model.objects.filter(name="echo-1").update(enabled=False)
    Binding.objects.filter(model__name="echo-1-messages").update(enabled=False)
    assert names(catalog) == ["echo-1-embeddings", "echo-1-responses"]
    for model in (Host, Provider):
        model.objects.update(enabled=False)
        assert names(catalog) == []
        model.objects.update(enabled=True)


def test_without_a_working_policy_there_is_nothing(catalog: SimpleNamespace) -> None:
    Policy.objects.update(enabled=False)
    assert names(catalog) == []
    catalog.service_account.policy = None
    catalog.service_account.save()
    assert names(catalog) == []


def test_a_credential_is_needed(catalog: SimpleNamespace) -> None:
    assert Client().get("/v1/models").status_code == 401
    RelayKey.objects.update(enabled=False)
    assert (
        Client().get("/v1/models", headers=catalog.headers).json()["error"]["code"] == "credential_disabled"
    )


def test_it_asks_as_often_for_many_models_as_for_few(
    catalog: SimpleNamespace, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        model = Model.objects.create(name=f"m{number}", provider=catalog.provider)
        Binding.objects.create(model=model, host=catalog.host, adapter="openai")
    with django_assert_max_num_queries(4):
        assert len(names(catalog)) == 24
