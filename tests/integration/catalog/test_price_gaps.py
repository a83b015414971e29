"""Where calls would go unpriced, as `apply` and the admin report it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.messages import get_messages
from django.core.management import call_command

from routing.models import Binding, Model, Pricing, Rate, User
from tests.support.rows.admin_rows import logged_in_client, make_admin_rows, owner_client, viewer_client

if TYPE_CHECKING:
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

pytestmark = pytest.mark.django_db
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))
CATALOG = """\
providers: [{name: p}]
hosts: [{name: h, base_url: "https://api.example.com"}]
pricing:
  - name: short
    rates: [{meter: input, per_million: 1}, {meter: output, per_million: 2}]
  - name: whole
    rates:
      - {meter: input, per_million: 1}
      - {meter: cache_read, per_million: 1}
      - {meter: cache_write, per_million: 1}
      - {meter: output, per_million: 2}
models:
  - name: one
    provider: p
    bindings: [{host: h, adapter: openai, pricing: short}]
"""
SHORT_OF = (
    "warning: pricing short has no rate from 0 tokens on for cache_read, cache_write, which the adapter openai of {} "
    "can report: add a rate for each (0 if it costs nothing), or calls that report it are unpriced and count for no "
    "allowance"
)
WITHOUT = (
    "warning: bindings of {} have no pricing, a disabled one, or one in another currency: their calls are unpriced and "
    "count for no allowance; give them a pricing if they are to be counted"
)


def stderr_lines(tmp_path: Path, catalog: str, *options: str) -> list[str]:
    """The lines on stderr."""
    path = tmp_path / "catalog.yaml"
    path.write_text(catalog)
    out, err = io.StringIO(), io.StringIO()
    call_command("apply", str(path), *options, stdout=out, stderr=err, no_color=True)
    return err.getvalue().splitlines()


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--json",), ("--prune",)])
def test_a_price_list_without_a_rate_for_what_its_adapter_reports_is_reported(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert stderr_lines(tmp_path, CATALOG, *options) == [SHORT_OF.format("model one")]


def test_embeddings_need_a_rate_for_input_alone(tmp_path: Path) -> None:
    embeddings = CATALOG.replace("adapter: openai,", "adapter: openai_embeddings,")
    assert stderr_lines(tmp_path, embeddings) == []
    without_input = embeddings.replace("{meter: input, per_million: 1}, ", "", 1)
    (line,) = stderr_lines(tmp_path, without_input)
    assert "has no rate from 0 tokens on for input, which the adapter openai_embeddings" in line


def test_a_gap_is_reported_each_time(tmp_path: Path) -> None:
    stderr_lines(tmp_path, CATALOG)
    assert stderr_lines(tmp_path, CATALOG) == [SHORT_OF.format("model one")]


def test_with_json_stdout_is_one_line_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(CATALOG)
    out = io.StringIO()
    call_command("apply", str(path), "--json", stdout=out, stderr=io.StringIO())
    (line,) = out.getvalue().splitlines()
    assert len(json.loads(line)["changes"]) == 5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pricing: short}", "pricing: whole}"),
        ("adapter: openai, pricing: short}", "adapter: anthropic, pricing: whole}"),
        ("pricing: short}", "pricing: short, enabled: false}"),
        ("{name: p}", "{name: p, enabled: false}"),
        ('"https://api.example.com"', '"https://api.example.com", enabled: false'),
        ("name: one\n", "name: one\n    enabled: false\n"),
    ],
)
def test_nothing_is_reported_where_all_is_priced_or_nothing_is_called(
    tmp_path: Path, old: str, new: str
) -> None:
    assert old in CATALOG
    assert stderr_lines(tmp_path, CATALOG.replace(old, new)) == []


def test_a_rate_that_begins_above_some_tokens_is_none_for_what_is_below(tmp_path: Path) -> None:
    catalog = CATALOG.replace("pricing: short}", "pricing: whole}").replace(
        "{meter: cache_read, per_million: 1}", "{meter: cache_read, per_million: 1, above_tokens: 9}"
    )
    (line,) = stderr_lines(tmp_path, catalog)
    assert "pricing whole has no rate from 0 tokens on for cache_read, which" in line


def test_parts_do_not_price_their_whole(tmp_path: Path) -> None:
    catalog = CATALOG.replace("pricing: short}", "pricing: whole}").replace("cache_write", "cache_write_5m")
    (line,) = stderr_lines(tmp_path, catalog)
    assert "no rate from 0 tokens on for cache_write, which" in line


def test_there_is_a_line_for_each_price_list_and_adapter_with_its_models(tmp_path: Path) -> None:
    more = "".join(
        f"  - {{name: {name}, provider: p, bindings: [{{host: h, adapter: {adapter}, pricing: short}}]}}\n"
        for name, adapter in [
            *((f"m{number}", "openai") for number in range(6)),
            ("r1", "openai_responses"),
            ("r2", "openai_responses"),
        ]
    )
    assert stderr_lines(tmp_path, CATALOG + more) == [
        SHORT_OF.format("models m0, m1, m2, m3, m4 and 2 more"),
        SHORT_OF.format("models r1, r2").replace("adapter openai", "adapter openai_responses"),
    ]


def test_bindings_without_prices_are_reported_once(tmp_path: Path) -> None:
    more = "".join(
        f"  - {{name: {name}, provider: p, bindings: [{{host: h, adapter: openai}}]}}\n"
        for name in ("two", "xx")
    )
    off = CATALOG.replace("name: short\n", "name: short\n    enabled: false\n")
    assert stderr_lines(tmp_path, off + more) == [WITHOUT.format("models one, two, xx")]


def test_a_price_list_in_another_currency_prices_nothing(tmp_path: Path, settings: Settings) -> None:
    """As where RELAY_CURRENCY was changed after the prices were declared."""
    assert stderr_lines(tmp_path, CATALOG.replace("pricing: short", "pricing: whole")) == []
    settings.RELAY_CURRENCY = "EUR"
    assert stderr_lines(tmp_path, "providers: [{name: p}]") == [WITHOUT.format("model one")]


def test_a_name_cannot_break_the_line(tmp_path: Path) -> None:
    (line,) = stderr_lines(tmp_path, CATALOG.replace("name: one", 'name: "a\\nb"'))
    assert "model 'a\\nb' can report" in line


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_price_all_that_their_adapters_report(path: Path) -> None:
    err = io.StringIO()
    call_command("apply", str(path), stdout=io.StringIO(), stderr=err)
    assert err.getvalue() == ""


# The admin


@pytest.fixture
def world() -> SimpleNamespace:
    return make_admin_rows()


def warnings_after(client: Client, url: str, fields: dict[str, Any]) -> list[str]:
    response = client.post(url, {"enabled": "on"} | fields)
    assert response.status_code == 302, response.content.decode()
    return [str(each) for each in get_messages(response.wsgi_request) if each.level_tag == "warning"]


def rates_of(pricing: Pricing, *meters: str) -> dict[str, Any]:
    """The pricing page's form, with these rates in the place of its own."""
    stored = list(pricing.rates.order_by("meter", "above_tokens", "id"))
    fields: dict[str, Any] = {"name": pricing.name, "currency": "USD", "rates-TOTAL_FORMS": len(stored)}
    fields["rates-INITIAL_FORMS"] = len(stored)
    for number, rate in enumerate(stored):
        form = {
            "id": rate.pk,
            "pricing": pricing.pk,
            "meter": rate.meter,
            "per_million": 1,
            "above_tokens": 0,
        }
        form |= {} if rate.meter in meters else {"DELETE": "on"}
        fields |= {f"rates-{number}-{name}": value for name, value in form.items()}
    return fields


def test_saving_a_price_list_warns_of_what_its_bindings_report_besides(world: SimpleNamespace) -> None:
    url = f"/admin/routing/pricing/{world.pricing.pk}/change/"
    warned = warnings_after(owner_client(), url, rates_of(world.pricing, "input", "cache_read", "output"))
    assert [line.partition(":")[0] for line in warned] == [
        f"pricing {world.pricing.name} has no rate from 0 tokens on for cache_write, which the adapter {adapter} of "
        f"model {model} can report"
        for adapter, model in (
            ("anthropic", "echo-1-messages"),
            ("openai", "echo-1"),
            ("openai_responses", "echo-1-responses"),
        )
    ]
    Rate.objects.create(pricing=world.pricing, meter="cache_write", rate_nanos=1)
    all_meters = ("input", "cache_read", "cache_write", "output")
    assert warnings_after(owner_again(), url, rates_of(world.pricing, *all_meters)) == []


def owner_again() -> Client:
    return logged_in_client(User.objects.get(username="owner"))


def test_saving_a_model_warns_of_its_own_bindings_alone(world: SimpleNamespace) -> None:
    other = Model.objects.create(name="other", provider=world.provider)
    Binding.objects.create(model=other, host=world.host, adapter="openai")
    model = world.models["openai"]
    binding = Binding.objects.get(model=model)
    fields = {
        "name": model.name,
        "provider": world.provider.pk,
        "aliases-TOTAL_FORMS": 0,
        "aliases-INITIAL_FORMS": 0,
        "bindings-TOTAL_FORMS": 1,
        "bindings-INITIAL_FORMS": 1,
        "bindings-0-id": binding.pk,
        "bindings-0-model": model.pk,
        "bindings-0-position": 0,
        "bindings-0-host": world.host.pk,
        "bindings-0-adapter": "openai",
        "bindings-0-enabled": "on",
    }
    (line,) = warnings_after(owner_client(), f"/admin/routing/model/{model.pk}/change/", fields)
    assert line.startswith("bindings of model echo-1 have no pricing")


@pytest.mark.parametrize("who", [owner_client, viewer_client])
def test_the_page_of_a_price_list_and_of_a_model_shows_what_is_lacking(
    world: SimpleNamespace, who: Any
) -> None:
    Rate.objects.filter(pricing=world.pricing, meter="cache_read").delete()
    client = who()
    for page in (f"pricing/{world.pricing.pk}", f"model/{world.models['openai'].pk}"):
        html = client.get(f"/admin/routing/{page}/change/").content.decode()
        assert "has no rate from 0 tokens on for cache_read, which the adapter openai of model echo-1" in html
    Rate.objects.create(pricing=world.pricing, meter="cache_read", rate_nanos=1)
    html = client.get(f"/admin/routing/pricing/{world.pricing.pk}/change/").content.decode()
    assert "has no rate" not in html
