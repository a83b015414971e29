"""From a model's name to bindings and host keys, as a policy allows."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from routing.calls.call import PriceList, PriceRate
from routing.calls.failures import CallFailed
from routing.models import (
    Alias,
    Binding,
    Host,
    HostKey,
    Model,
    Policy,
    PolicyHostKey,
    Pricing,
    Provider,
    Rate,
)
from routing.resolution.resolve import clear_cache, resolve_model
from routing.secrets.encryption import encrypt

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

    from routing.resolution.route import Route

pytestmark = pytest.mark.django_db


def resolve(*, policy_id: uuid.UUID, model_name: str, adapter: str) -> Route:
    found = resolve_model(policy_id=policy_id, model_name=model_name, adapter=adapter)
    if found.failure is not None:
        raise CallFailed(found.failure)
    return found.route


class Catalog:
    """One policy with a key on each of two hosts, and the model `m` of the provider `p` on both."""

    def __init__(self) -> None:
        self.policy = Policy.objects.create(name="policy")
        self.provider = Provider.objects.create(name="p")
        self.east, self.west = self.host("east"), self.host("west")
        self.model = self.add_model("m")

    def host(self, name: str) -> Host:
        host = Host.objects.create(name=name, base_url=f"https://{name}")
        key = HostKey.objects.create(name=f"{name}-key", host=host, secret_encrypted=encrypt(name.encode()))
        PolicyHostKey.objects.create(policy=self.policy, host_key=key)
        return host

    def add_model(self, name: str, *, provider: Provider | None = None) -> Model:
        model = Model.objects.create(name=name, provider=provider or self.provider)
        for position, host in enumerate((self.east, self.west)):
            Binding.objects.create(model=model, host=host, adapter="openai", position=position)
        return model

    def grant(self, *grants: str) -> None:
        Policy.objects.update(models_granted=list(grants))

    def route(self, name: str = "m", *, adapter: str = "openai") -> Route:
        clear_cache()
        return resolve(policy_id=self.policy.id, model_name=name, adapter=adapter)

    def code(self, name: str = "m", *, adapter: str = "openai") -> str:
        with pytest.raises(CallFailed) as failed:
            self.route(name, adapter=adapter)
        message = "cross-shape dispatch" if failed.value.failure.code == "cross_shape" else name[:50]
        assert message in failed.value.failure.message
        return failed.value.failure.code


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


def hosts(route: Route) -> list[str]:
    return [binding.host for binding in route.bindings]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("m", ["east", "west"]), ("p/m", ["east", "west"]), ("m@west", ["west"]), ("p/m@west", ["west"])],
)
def test_a_model_is_found_by_each_way_of_naming_it(catalog: Catalog, name: str, expected: list[str]) -> None:
    route = catalog.route(name)

    assert (route.model, route.provider, route.policy) == ("m", "p", "policy")
    assert hosts(route) == expected


@pytest.mark.parametrize(
    "name", ["M", "m ", "q/m", "m@north", "p/m@", "nothing", "p/nothing@east", "p", "x" * 900]
)
def test_what_is_called_otherwise_is_not_found(catalog: Catalog, name: str) -> None:
    assert catalog.code(name) == "model_not_found"


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "\udfff/m"])
def test_what_a_row_cannot_hold_is_not_found_and_its_message_can_be_stored(
    catalog: Catalog, name: str
) -> None:
    with pytest.raises(CallFailed) as failed:
        catalog.route(name)

    assert failed.value.failure.code == "model_not_found"
    assert "\x00" not in failed.value.failure.message
    assert failed.value.failure.message.encode()


@pytest.mark.parametrize("name", ["p/m", "m@west", "p/m@west", "with spaces: 😀/and/slashes@", "x" * 300])
def test_an_exact_name_wins_over_a_split_one(catalog: Catalog, name: str) -> None:
    catalog.add_model(name)

    assert catalog.route(name).model == name


def test_an_exact_alias_wins_over_a_wildcard_and_a_longer_wildcard_over_a_shorter(catalog: Catalog) -> None:
    for pattern, wildcard in (("", True), ("gpt-4", True), ("gpt-4o", True), ("gpt-4o-mini", False)):
        model = catalog.add_model(f"for {pattern or 'all'}{'*' if wildcard else ''}")
        Alias.objects.create(model=model, pattern=pattern, wildcard=wildcard)

    assert catalog.route("gpt-4o-mini").model == "for gpt-4o-mini"
    assert catalog.route("gpt-4o-mini-2").model == "for gpt-4o*"
    assert catalog.route("gpt-4o").model == "for gpt-4o*"
    assert catalog.route("gpt-4.1").model == "for gpt-4*"
    assert catalog.route("anything").model == "for all*"
    assert catalog.route("m").model == "m", "a model's own name wins over every alias"


def test_a_wildcard_has_no_special_characters(catalog: Catalog) -> None:
    Alias.objects.create(model=catalog.model, pattern="a%_.", wildcard=True)

    assert catalog.route("a%_.x").model == "m"
    assert catalog.code("abcdx") == "model_not_found"


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ([], ["east", "west"]),
        (["p"], ["east", "west"]),
        (["p/m"], ["east", "west"]),
        (["p/m@west"], ["west"]),
        (["p@east"], ["east"]),
        (["@west", "q"], ["west"]),
        (["@west", "p/m@east"], ["east", "west"]),
    ],
)
def test_only_granted_hosts_are_used(catalog: Catalog, grants: list[str], expected: list[str]) -> None:
    catalog.grant(*grants)

    assert hosts(catalog.route()) == expected


def test_a_model_or_host_beyond_the_grants_is_not_allowed(catalog: Catalog) -> None:
    catalog.grant("p/other", "q", "@north")
    assert catalog.code() == "model_not_allowed"

    catalog.grant("p/m@east")
    assert catalog.code("m@west") == "model_not_allowed"


def test_a_disabled_model_or_provider_is_disabled(catalog: Catalog) -> None:
    Model.objects.update(enabled=False)
    assert catalog.code() == "model_disabled"

    Model.objects.update(enabled=True)
    Provider.objects.update(enabled=False)
    assert catalog.code() == "model_disabled"


def test_disabled_bindings_hosts_and_keys_are_passed_over(catalog: Catalog) -> None:
    Binding.objects.filter(host=catalog.east).update(enabled=False)
    assert hosts(catalog.route()) == ["west"]

    Binding.objects.update(enabled=True)
    Host.objects.filter(name="east").update(enabled=False)
    assert hosts(catalog.route()) == ["west"]
    assert catalog.code("m@east") == "no_binding"

    Host.objects.update(enabled=True)
    HostKey.objects.filter(host=catalog.east).update(enabled=False)
    assert hosts(catalog.route()) == ["west"]
    assert catalog.code("m@east") == "no_keys"


def test_without_any_the_failure_says_what_is_missing(catalog: Catalog) -> None:
    HostKey.objects.update(secret_encrypted=None, env_name="UPSTREAM_TEST_UNSET")
    assert catalog.code() == "no_keys"

    PolicyHostKey.objects.all().delete()
    assert catalog.code() == "no_keys"

    Binding.objects.all().delete()
    assert catalog.code() == "no_binding"


def test_the_first_usable_binding_of_the_asked_shape_is_taken(catalog: Catalog) -> None:
    Binding.objects.filter(host=catalog.east).update(adapter="anthropic")

    assert hosts(catalog.route(adapter="openai")) == ["west"]
    assert hosts(catalog.route(adapter="anthropic")) == ["east"]
    assert hosts(catalog.route("m@west")) == ["west"]
    assert catalog.code("m@west", adapter="anthropic") == "cross_shape"

    Binding.objects.filter(host=catalog.east).update(enabled=False)
    assert catalog.code(adapter="anthropic") == "cross_shape"
    Binding.objects.update(enabled=True)

    HostKey.objects.filter(host=catalog.east).update(enabled=False)
    assert hosts(catalog.route()) == ["west"]


def test_keys_are_in_the_policys_order_and_of_this_policy_only(catalog: Catalog) -> None:
    for name, position in (("third", 3), ("second", 2)):
        key = HostKey.objects.create(
            name=name, host=catalog.east, secret_encrypted=encrypt(f"{name}-in-secret".encode())
        )
        PolicyHostKey.objects.create(policy=catalog.policy, host_key=key, position=position)
    stranger = Policy.objects.create(name="stranger")
    key = HostKey.objects.create(name="strange", host=catalog.east, secret_encrypted=encrypt(b"x"))
    PolicyHostKey.objects.create(policy=stranger, host_key=key)

    keys = catalog.route().bindings[0].keys
    assert [(key.name, key.secret) for key in keys] == [
        ("east-key", "east"),
        ("second", "second-in-secret"),
        ("third", "third-in-secret"),
    ]
    assert "in-secret" not in repr(keys)


def test_a_secret_comes_from_the_environment(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    HostKey.objects.update(secret_encrypted=None, env_name="UPSTREAM_TEST_HOST_KEY")
    monkeypatch.setenv("UPSTREAM_TEST_HOST_KEY", "from-env\n")

    assert catalog.route().bindings[0].keys[0].secret == "from-env"


def test_a_binding_has_its_upstream_name_and_its_prices(catalog: Catalog) -> None:
    pricing = Pricing.objects.create(name="dear", currency="USD", version=3)
    for above, nanos in ((200_000, 4), (0, 2)):
        Rate.objects.create(pricing=pricing, meter="input", rate_nanos=nanos, above_tokens=above)
    Binding.objects.filter(host=catalog.east).update(pricing=pricing, upstream_name="m-2026")

    east, west = catalog.route().bindings
    assert (east.upstream_name, west.upstream_name) == ("m-2026", "m")
    assert east.prices == PriceList(
        "dear", 3, "USD", (PriceRate("input", 2, 0), PriceRate("input", 4, 200_000))
    )
    assert west.prices is None
    Pricing.objects.update(enabled=False)
    clear_cache()
    assert catalog.route().bindings[0].prices is None


def test_a_policy_that_is_gone_or_disabled_fails(catalog: Catalog) -> None:
    with pytest.raises(CallFailed) as deleted:
        resolve(policy_id=uuid.uuid4(), model_name="m", adapter="openai")
    assert deleted.value.failure.code == "policy_deleted"

    Policy.objects.update(enabled=False)
    with pytest.raises(CallFailed) as disabled:
        catalog.route()
    assert disabled.value.failure.code == "policy_disabled"


def test_the_number_of_queries_does_not_grow_with_the_catalog(
    catalog: Catalog, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        host = catalog.host(f"host{number}")
        pricing = Pricing.objects.create(name=f"pricing{number}", currency="USD")
        Rate.objects.create(pricing=pricing, meter="input", rate_nanos=1)
        Binding.objects.create(model=catalog.model, host=host, adapter="openai", position=9, pricing=pricing)
    with django_assert_max_num_queries(6):
        assert len(catalog.route("p/m").bindings) == 7
    with django_assert_max_num_queries(0):
        resolve(policy_id=catalog.policy.id, model_name="p/m", adapter="openai")
