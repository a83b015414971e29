"""The catalog in the admin: it stores what `apply` stores and refuses what `apply` refuses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from routing.models import Alias, Binding, Host, Policy, Pricing, Project, Provider, Rate, RateLimitRule
from tests.support.rows.admin_rows import make_admin_rows, owner_client

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client

pytestmark = pytest.mark.django_db
FIELD = re.compile(r'<(?:input|select|textarea)[^>]* name="([^"]+)"')


@pytest.fixture
def world() -> SimpleNamespace:
    return make_admin_rows()


@pytest.fixture
def client() -> Client:
    return owner_client()


def rows(prefix: str, *entries: dict[str, Any], stored: int = 0) -> dict[str, Any]:
    """An inline's fields: the first `stored` entries are rows that exist (they name their `id`)."""
    fields = {f"{prefix}-{number}-{name}": v for number, e in enumerate(entries) for name, v in e.items()}
    return fields | {f"{prefix}-TOTAL_FORMS": len(entries), f"{prefix}-INITIAL_FORMS": stored}


def save(client: Client, model: str, fields: dict[str, Any], *, row: Any = None) -> str:
    """Empty when it was saved; else the page with what is wrong."""
    url = f"/admin/routing/{model}/{f'{row.pk}/change' if row else 'add'}/"
    response = client.post(url, {"enabled": "on"} | fields)
    assert response.status_code in (200, 302)
    return response.content.decode().replace("&#x27;", "'") if response.status_code == 200 else ""


@pytest.mark.parametrize("name", ["with/slash", "with@at", "x" * 201])
def test_names_of_providers_have_no_separators(client: Client, world: SimpleNamespace, name: str) -> None:
    assert save(client, "provider", {"name": name})
    assert not Provider.objects.filter(name=name).exists()


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("ftp://example.com", "http:// or https://"),
        ("https://user:secret@example.com", "without credentials"),
        ("https://example.com?x=1", "without ? and #"),
        ("https://example.com:99999", "port"),
        ("https://example.com/a/%2e%2e", "without the segments"),
        ("https://{model}.example.com", "in the path alone"),
    ],
)
def test_base_urls_have_the_form_that_apply_takes(
    client: Client, world: SimpleNamespace, url: str, text: str
) -> None:
    assert text in save(client, "host", {"name": "new", "base_url": url})
    assert not Host.objects.filter(name="new").exists()


def test_a_base_url_is_stored_without_its_last_slash(client: Client, world: SimpleNamespace) -> None:
    fields = {"name": "new", "base_url": "https://example.com/v1/"} | rows("headers")
    assert save(client, "host", fields) == ""
    assert Host.objects.get(name="new").base_url == "https://example.com/v1"


def test_a_step_along_the_path_cannot_stand_for_the_model(client: Client, world: SimpleNamespace) -> None:
    fields = model_fields(world, upstream_name="..")
    Host.objects.update(base_url="https://example.com/{model}")
    assert "cannot stand for {model}" in save(client, "model", fields)
    assert "cannot stand for {model}" in save(client, "model", model_fields(world) | {"name": ".."})
    assert not Binding.objects.filter(model__name__in=["new", ".."]).exists()

    Host.objects.update(base_url="https://example.com")
    assert save(client, "model", fields) == ""
    changed = {"base_url": "https://example.com/{model}"}
    assert "model new on host" in save(client, "host", changed, row=world.host)
    assert Host.objects.get().base_url == "https://example.com"


def test_a_name_stays_as_it_was_given(client: Client, world: SimpleNamespace) -> None:
    assert save(client, "provider", {"name": "other"}, row=world.provider) == ""
    assert Provider.objects.get().name == world.provider.name
    html = client.get(f"/admin/routing/provider/{world.provider.pk}/change/").content.decode()
    assert "name" not in FIELD.findall(html)


def model_fields(world: SimpleNamespace, *aliases: str, **binding: Any) -> dict[str, Any]:
    bound = {"position": 0, "host": world.host.id, "adapter": "openai", "enabled": "on"} | binding
    return (
        {"name": "new", "provider": world.provider.id}
        | rows("aliases", *({"pattern": alias} for alias in aliases))
        | rows("bindings", bound)
    )


def test_a_model_comes_with_aliases_and_bindings(client: Client, world: SimpleNamespace) -> None:
    fields = model_fields(world, "short", "new-2024*", pricing=world.pricing.id, upstream_name="their-name")
    assert save(client, "model", fields) == ""
    aliases = Alias.objects.filter(model__name="new").values_list("pattern", "wildcard")
    assert set(aliases) == {("short", False), ("new-2024", True)}
    binding = Binding.objects.get(model__name="new")
    assert (binding.adapter, binding.upstream_name, binding.pricing) == (
        "openai",
        "their-name",
        world.pricing,
    )


@pytest.mark.parametrize(
    ("aliases", "text"),
    [
        (("a*b",), "at most one *"),
        (("twice", "twice"), "given twice"),
        (("gpt-*",), "has the alias gpt-* already"),
    ],
)
def test_aliases_are_what_apply_takes(
    client: Client, world: SimpleNamespace, aliases: tuple[str, ...], text: str
) -> None:
    assert text in save(client, "model", model_fields(world, *aliases))
    assert not Alias.objects.filter(model__name="new").exists()


def test_an_alias_that_is_not_touched_stays_a_wildcard(client: Client, world: SimpleNamespace) -> None:
    model = world.models["openai"]
    alias, binding = Alias.objects.get(), Binding.objects.get(model=model)
    fields = (
        {"provider": world.provider.id}
        | rows("aliases", {"id": alias.id, "model": model.id, "pattern": "gpt-*"}, {"pattern": "x"}, stored=1)
        | rows(
            "bindings",
            {
                "id": binding.id,
                "model": model.id,
                "position": 0,
                "host": world.host.id,
                "adapter": "openai",
                "pricing": world.pricing.id,
                "enabled": "on",
            },
            stored=1,
        )
    )
    assert save(client, "model", fields, row=model) == ""
    found = Alias.objects.filter(model=model).values_list("pattern", "wildcard")
    assert set(found) == {("gpt-", True), ("x", False)}


def rates(world: SimpleNamespace, **amounts: str) -> dict[str, Any]:
    """The world's rates as the form has them, with other amounts for some."""
    stored = list(Rate.objects.filter(pricing=world.pricing))
    usual = {"input": "2", "cache_read": "0.50", "cache_write": "2.50", "output": "8"}
    entries = (
        {
            "id": rate.id,
            "pricing": world.pricing.id,
            "meter": rate.meter,
            "above_tokens": rate.above_tokens,
            "per_million": (usual | amounts)[rate.meter],
        }
        for rate in stored
    )
    return {"currency": "USD"} | rows("rates", *entries, stored=len(stored))


def test_prices_are_amounts_a_million_and_exact(client: Client, world: SimpleNamespace) -> None:
    html = client.get(f"/admin/routing/pricing/{world.pricing.pk}/change/").content.decode()
    assert 'value="0.50"' in html
    assert save(client, "pricing", rates(world, input="0.000000001"), row=world.pricing) == ""
    assert Rate.objects.get(pricing=world.pricing, meter="input").rate_nanos == 1
    assert Rate.objects.get(pricing=world.pricing, meter="output").rate_nanos == 8_000_000_000


def test_another_price_is_another_version_and_the_same_is_not(client: Client, world: SimpleNamespace) -> None:
    assert save(client, "pricing", rates(world), row=world.pricing) == ""
    assert Pricing.objects.get().version == 1
    assert save(client, "pricing", rates(world, output="9"), row=world.pricing) == ""
    assert Pricing.objects.get().version == 2


@pytest.mark.parametrize("amount", ["-1", "1e3", "0.0000000001", "NaN", "9223372037", "1,50"])
def test_an_amount_that_cannot_be_stored_exactly_is_refused(
    client: Client, world: SimpleNamespace, amount: str
) -> None:
    assert "expected an amount" in save(client, "pricing", rates(world, input=amount), row=world.pricing)
    assert Rate.objects.get(pricing=world.pricing, meter="input").rate_nanos == 2_000_000_000


def test_another_currency_than_the_deployments_is_refused(client: Client, world: SimpleNamespace) -> None:
    text = save(client, "pricing", rates(world) | {"currency": "EUR"}, row=world.pricing)
    assert "expected USD" in text


def test_two_rates_may_swap_their_tiers(client: Client, world: SimpleNamespace) -> None:
    first, second, *_ = Rate.objects.filter(pricing=world.pricing)
    fields = rates(world)
    fields["rates-0-meter"], fields["rates-1-meter"] = second.meter, first.meter
    assert save(client, "pricing", fields, row=world.pricing) == ""
    assert {r.id: r.meter for r in Rate.objects.filter(id__in=[first.id, second.id])} == {
        first.id: second.meter,
        second.id: first.meter,
    }


def policy_fields(*grants: str, host_keys: tuple[Any, ...] = ()) -> dict[str, Any]:
    entries = ({"position": position, "host_key": key.id} for position, key in enumerate(host_keys))
    return {
        "name": "new",
        "models_granted": "\r\n".join(grants),
        "key_selection": "prioritized",
    } | rows("policyhostkey_set", *entries)


def test_a_policy_has_grants_and_host_keys(client: Client, world: SimpleNamespace) -> None:
    grants = (f"{world.provider.name}/echo-1", f"@{world.host.name}")
    assert save(client, "policy", policy_fields(*grants, host_keys=tuple(world.host_keys))) == ""
    policy = Policy.objects.get(name="new")
    assert tuple(policy.models_granted) == grants
    assert list(policy.host_keys.all()) == world.host_keys


@pytest.mark.parametrize("grant", ["nobody", "nobody/echo-1", "@nowhere", "/", '["no list"'])
def test_a_grant_names_what_there_is(client: Client, world: SimpleNamespace, grant: str) -> None:
    text = save(client, "policy", policy_fields(grant))
    assert "unknown" in text or "expected" in text
    assert not Policy.objects.filter(name="new").exists()


def test_a_host_key_is_in_a_policy_once(client: Client, world: SimpleNamespace) -> None:
    assert save(client, "policy", policy_fields(host_keys=(world.host_keys[0],) * 2))
    assert not Policy.objects.filter(name="new").exists()


def test_rules_fit_their_meters(client: Client, world: SimpleNamespace) -> None:
    wrong = rows("rules", {"position": 0, "meter": "requests", "amount": 5})
    assert "needs window_seconds and strategy" in save(client, "ratelimit", {"name": "new"} | wrong)
    entry = {
        "position": 0,
        "meter": "requests",
        "amount": 5,
        "window_seconds": 60,
        "strategy": "fixed-window",
    }
    assert save(client, "ratelimit", {"name": "new"} | rows("rules", entry)) == ""
    assert RateLimitRule.objects.get(rate_limit__name="new").window_seconds == 60


def test_a_project_may_have_an_allowance_a_month(client: Client, world: SimpleNamespace) -> None:
    fields = {"name": "new", "team": world.team.id, "included_amount": "50.000000001"}
    assert save(client, "project", fields) == ""
    project = Project.objects.get(name="new")
    assert (project.included_nanos, project.included_currency) == (50_000_000_001, "USD")
    assert save(client, "project", {"team": world.team.id, "included_amount": ""}, row=project) == ""
    project.refresh_from_db()
    assert (project.included_nanos, project.included_currency) == (None, "")


def test_unpriced_use_closes_an_allowance_that_there_is(client: Client, world: SimpleNamespace) -> None:
    fields = {"name": "new", "team": world.team.id, "unpriced_closes": "on"}
    assert "only an included usage can be closed" in save(client, "project", fields)
    assert save(client, "project", fields | {"included_amount": "50"}) == ""
    project = Project.objects.get(name="new")
    assert (project.included_nanos, project.unpriced_closes) == (50_000_000_000, True)
    assert save(client, "project", {"team": world.team.id, "included_amount": "50"}, row=project) == ""
    project.refresh_from_db()
    assert (project.included_nanos, project.unpriced_closes) == (50_000_000_000, False)


@pytest.mark.parametrize("forged", ["zz", "0", "\0", "9" * 400])
@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("hostkey", "host"),
        ("hostkey", "rate_limit"),
        ("serviceaccount", "policy"),
        ("model", "bindings-0-host"),
        ("policy", "policyhostkey_set-0-host_key"),
        ("project", "team"),
        ("relaykey", "service_account"),
    ],
)
def test_what_is_no_key_of_another_row_is_an_error_of_its_field(
    client: Client, world: SimpleNamespace, model: str, field: str, forged: str
) -> None:
    prefix = field.partition("-")[0]
    fields = {"name": "new", f"{prefix}-TOTAL_FORMS": 1, f"{prefix}-INITIAL_FORMS": 0}
    empty = rows("aliases") | rows("bindings") | rows("policyhostkey_set")
    page = save(client, model, empty | fields | {field: forged})
    assert re.search("(is not a valid UUID|Null characters are not allowed)", page)
