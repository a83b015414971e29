"""`manage.py apply`: what it writes, what it prints, and that the second time changes nothing."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command

from routing.catalog.apply import apply_catalog
from routing.models import (
    Alias,
    Binding,
    HostKey,
    Model,
    Policy,
    PolicyHostKey,
    Pricing,
    Project,
    RateLimitRule,
    ServiceAccount,
    User,
)
from routing.secrets.host_key_secret import host_key_secret

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db

CATALOG = """\
providers: [{name: openai}]
hosts:
  - {name: openai, base_url: "https://api.openai.com"}
host_keys:
  - {name: openai-main, host: openai, value_from: {env: OPENAI_API_KEY}}
  - {name: openai-spare, host: openai, value: "sk-upstream-secret"}
pricing:
  - name: gpt-4o
    currency: USD
    rates:
      - {meter: input, per_million: "2.50"}
      - {meter: input, per_million: 5, above_tokens: 200000}
      - {meter: output, per_million: 10.00}
models:
  - name: gpt-4o
    provider: openai
    aliases: [gpt-4o-latest, "gpt-4o-2024*"]
    bindings:
      - {host: openai, adapter: openai, upstream_name: gpt-4o-2024-11-20, pricing: gpt-4o}
      - {host: openai, adapter: openai_responses, enabled: false}
rate_limits:
  - name: standard
    rules:
      - {meter: requests, amount: 500, window_seconds: 60, strategy: sliding-window}
      - {meter: concurrency, amount: 8}
policies:
  - name: default
    models: ["openai/gpt-4o"]
    host_keys: [openai-spare, openai-main]
    key_selection: round-robin
    rate_limit: standard
teams: [{name: core}]
projects: [{name: search, team: core, included_usage: {amount: "50.00", currency: USD, per: month}}]
service_accounts: [{name: nightly, project: search, policy: default}]
users: [{name: ana, project: search, policy: default}]
"""
ALL_CREATED = [
    "create rate_limit standard",
    "create provider openai",
    "create host openai",
    "create host_key openai-main",
    "create host_key openai-spare",
    "create pricing gpt-4o",
    "create model gpt-4o",
    "create policy default",
    "create team core",
    "create project search",
    "create service_account nightly",
    "create user ana",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.yaml"
    path.write_text(CATALOG)
    return path


def apply(path: Path, *options: str) -> list[str]:
    out = io.StringIO()
    call_command("apply", str(path), *options, stdout=out)
    return out.getvalue().splitlines()


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_whole_catalog_becomes_rows(file: Path) -> None:
    assert apply(file) == ALL_CREATED
    pricing = Pricing.objects.get(name="gpt-4o")
    assert set(pricing.rates.values_list("meter", "rate_nanos", "above_tokens")) == {
        ("input", 2_500_000_000, 0),
        ("input", 5_000_000_000, 200_000),
        ("output", 10_000_000_000, 0),
    }
    model = Model.objects.get(name="gpt-4o")
    assert set(Alias.objects.filter(model=model).values_list("pattern", "wildcard")) == {
        ("gpt-4o-latest", False),
        ("gpt-4o-2024", True),
    }
    assert list(
        Binding.objects.values_list("position", "adapter", "upstream_name", "pricing__name", "enabled")
    ) == [
        (0, "openai", "gpt-4o-2024-11-20", "gpt-4o", True),
        (1, "openai_responses", "", None, False),
    ]
    assert list(RateLimitRule.objects.values_list("meter", "amount", "window_seconds", "strategy")) == [
        ("requests", 500, 60, "sliding-window"),
        ("concurrency", 8, None, ""),
    ]
    policy = Policy.objects.get(name="default")
    assert (policy.models_granted, policy.key_selection) == (["openai/gpt-4o"], "round-robin")
    assert policy.rate_limit is not None
    assert list(PolicyHostKey.objects.values_list("host_key__name", flat=True)) == [
        "openai-spare",
        "openai-main",
    ]
    project = Project.objects.get(name="search")
    assert (project.included_nanos, project.included_currency) == (50_000_000_000, "USD")
    assert ServiceAccount.objects.get(name="nightly").policy == policy
    user = User.objects.get(username="ana")
    assert (user.project, user.policy, user.has_usable_password()) == (project, policy, False)


def test_the_second_time_changes_nothing(file: Path) -> None:
    apply(file)
    assert apply(file) == ["nothing to change"]


def test_a_dry_run_reports_all_changes_and_makes_none(file: Path) -> None:
    assert apply(file, "--dry-run") == [*ALL_CREATED, "dry run: nothing was changed"]
    assert not Model.objects.exists()
    assert apply(file) == ALL_CREATED


def test_a_stored_secret_is_encrypted_and_never_printed(file: Path) -> None:
    printed = apply(file)
    host_key = HostKey.objects.get(name="openai-spare")
    sealed = bytes(host_key.secret_encrypted or b"")
    assert b"sk-upstream-secret" not in sealed
    assert host_key_secret(host_key) == "sk-upstream-secret"
    assert not any("sk-upstream" in line for line in printed)


def test_a_stored_secret_is_written_again_only_when_it_differs(file: Path) -> None:
    apply(file)
    before = bytes(HostKey.objects.get(name="openai-spare").secret_encrypted or b"")
    apply(file)
    assert bytes(HostKey.objects.get(name="openai-spare").secret_encrypted or b"") == before
    change(file, "sk-upstream-secret", "sk-another-secret")
    assert apply(file) == ["update host_key openai-spare: value"]
    assert host_key_secret(HostKey.objects.get(name="openai-spare")) == "sk-another-secret"


def test_a_host_key_can_move_from_a_stored_value_to_the_environment(file: Path) -> None:
    apply(file)
    change(file, 'value: "sk-upstream-secret"', "value_from: {env: SPARE_KEY}")
    assert apply(file) == ["update host_key openai-spare: value_from, value"]
    host_key = HostKey.objects.get(name="openai-spare")
    assert (host_key.env_name, host_key.secret_encrypted) == ("SPARE_KEY", None)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("https://api.openai.com", "https://proxy.example/openai/v1/", "update host openai: base_url"),
        ("aliases: [gpt-4o-latest, ", "aliases: [", "update model gpt-4o: aliases"),
        (
            "adapter: openai_responses, enabled: false",
            "adapter: openai_responses",
            "update model gpt-4o: bindings",
        ),
        ("[openai-spare, openai-main]", "[openai-main, openai-spare]", "update policy default: host_keys"),
        ("    rate_limit: standard\n", "", "update policy default: rate_limit"),
        ('["openai/gpt-4o"]', "[]", "update policy default: models"),
        ("amount: 500", "amount: 501", "update rate_limit standard: rules"),
        ('amount: "50.00"', 'amount: "50.01"', "update project search: included_usage"),
        ("per: month}", "per: month, unpriced_closes: true}", "update project search: included_usage"),
        (
            ', included_usage: {amount: "50.00", currency: USD, per: month}',
            "",
            "update project search: included_usage",
        ),
        ("{name: nightly, project: search, policy: default}", "{name: nightly, project: search}", ""),
        ("{name: ana,", "{name: ana, enabled: false,", "update user ana: enabled"),
        ("teams: [{name: core}]", "teams: [{name: core, enabled: false}]", "update team core: enabled"),
    ],
)
def test_one_change_is_one_line_and_then_true(file: Path, old: str, new: str, line: str) -> None:
    apply(file)
    change(file, old, new)
    assert apply(file) == [line or "update service_account nightly: policy"]
    assert apply(file) == ["nothing to change"]


def test_unpriced_use_closes_an_allowance_only_where_the_file_says_so(file: Path) -> None:
    apply(file)
    assert not Project.objects.get(name="search").unpriced_closes
    change(file, "per: month}", "per: month, unpriced_closes: true}")
    apply(file)
    assert Project.objects.get(name="search").unpriced_closes
    change(file, ', included_usage: {amount: "50.00", currency: USD, per: month, unpriced_closes: true}', "")
    apply(file)
    project = Project.objects.get(name="search")
    assert (project.included_nanos, project.unpriced_closes) == (None, False)


def test_a_prices_version_rises_with_its_rates_alone(file: Path) -> None:
    apply(file)
    change(file, 'per_million: "2.50"', 'per_million: "2.51"')
    assert apply(file) == ["update pricing gpt-4o: rates"]
    assert Pricing.objects.get().version == 2
    change(file, "    currency: USD\n", "    currency: USD\n    enabled: false\n")
    assert apply(file) == ["update pricing gpt-4o: enabled"]
    assert Pricing.objects.get().version == 2


def test_rates_and_rules_that_are_switched_off_are_left_out(file: Path) -> None:
    change(file, "{meter: output, per_million: 10.00}", "{meter: output, per_million: 10.00, enabled: false}")
    change(file, "{meter: concurrency, amount: 8}", "{meter: concurrency, amount: 8, enabled: false}")
    apply(file)
    assert not Pricing.objects.get().rates.filter(meter="output").exists()
    assert RateLimitRule.objects.count() == 1


def test_an_alias_can_move_from_one_model_to_another(file: Path) -> None:
    apply(file)
    change(file, "[gpt-4o-latest, ", "[")
    new = "  - {name: new, provider: openai, aliases: [gpt-4o-latest]}\n"
    change(file, "models:\n  - name", f"models:\n{new}  - name")
    assert apply(file) == ["create model new", "update model gpt-4o: aliases"]
    assert Alias.objects.get(pattern="gpt-4o-latest").model.name == "new"


def test_a_file_may_refer_to_rows_that_are_there_already(file: Path, tmp_path: Path) -> None:
    apply(file)
    other = tmp_path / "more.yaml"
    other.write_text("service_accounts: [{name: weekly, project: search, policy: default}]\n")
    assert apply(other) == ["create service_account weekly"]


def test_json_with_tabs_and_escapes_is_a_catalog_too(tmp_path: Path) -> None:
    path = tmp_path / "catalog.json"
    rows = {"providers": [{"name": "p"}], "models": [{"name": "smile \U0001f600 / x", "provider": "p"}]}
    path.write_text("\ufeff" + json.dumps(rows, indent="\t"))
    assert apply(path) == ["create provider p", "create model smile \U0001f600 / x"]
    assert Model.objects.get().name == "smile \U0001f600 / x"


def test_a_models_name_may_be_any_text(tmp_path: Path) -> None:
    path = tmp_path / "catalog.json"
    names = ["a/b@c", "  padded  ", "two\nlines", "x" * 300, "\u2028"]
    path.write_text(
        json.dumps(
            {"providers": [{"name": "p"}], "models": [{"name": name, "provider": "p"} for name in names]}
        )
    )
    assert len(apply(path)) == 6
    assert set(Model.objects.values_list("name", flat=True)) == set(names)


def test_with_json_the_changes_are_one_line(file: Path) -> None:
    (line,) = apply(file, "--json", "--dry-run")
    answer = json.loads(line)
    assert answer["dry_run"] is True
    assert answer["changes"][0] == {
        "action": "create",
        "kind": "rate_limit",
        "name": "standard",
        "fields": [],
    }


def test_comparing_takes_a_fixed_number_of_queries(
    file: Path, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    apply(file)
    with django_assert_max_num_queries(35):
        assert apply_catalog(file) == []
