"""`manage.py apply` and files that are wrong: every problem with its line and the mend, and nothing changed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from routing.catalog.apply import apply_catalog
from routing.catalog.problems import CatalogRejected
from routing.models import Host, Model, Provider
from tests.support.calls.shell import Shell, shell

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

__all__ = ["shell"]
pytestmark = pytest.mark.django_db

GOOD = "providers: [{name: p}]\nhosts: [{name: h, base_url: 'http://127.0.0.1:9'}]\nmodels: [{name: m, provider: p}]\n"


def problems(path: Path, text: str | bytes, *, prune: bool = False) -> list[str]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(CatalogRejected) as rejected:
        apply_catalog(path, prune=prune)
    assert not Provider.objects.filter(name="p").exists()
    return [str(problem) for problem in rejected.value.problems]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.yaml"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("teams: [{name: t, colour: red}]", "teams[0]: unknown field colour: known are enabled, name"),
        ("team: [{name: t}]", "the file: unknown field team: known are host_keys, hosts, models"),
        ("teams: [{name: t}, {name: t}]", "teams[1]: team t is given twice, first in line 4"),
        ("teams: [{name: t, name: u}]", "teams[0]: name is given twice"),
        ("teams: [{}]", "teams[0]: name is missing"),
        ("teams: [{name: null}]", "teams[0]: name is missing"),
        ("teams: [{name: 4}]", "teams[0].name: expected text: put it in quotes"),
        ("teams: [{name: yes}]", "teams[0].name: expected text: put it in quotes"),
        ("teams: [{name: 2024-08-06}]", "teams[0].name: expected text: put it in quotes"),
        ("teams: [{name: ''}]", "teams[0].name: expected a name of 1-200 printable characters"),
        (f"teams: [{{name: {'x' * 201}}}]", "teams[0].name: expected a name of 1-200"),
        ('teams: [{name: "a\\nb"}]', "teams[0].name: expected a name of 1-200 printable characters"),
        ("teams: [{name: t, enabled: 1}]", "teams[0].enabled: expected true or false"),
        ("teams: {name: t}", "teams: expected a list"),
        ("teams: [t]", "teams[0]: expected a mapping with enabled, name"),
        ("projects: [{name: s, team: none}]", "projects[0].team: unknown team none: add it to teams"),
        ("projects: [{name: s}]", "projects[0]: team is missing"),
        ("service_accounts: [{name: s, project: none}]", "unknown project none"),
        ("users: [{name: a b}]", "users[0].name: expected 1-150 letters, digits and @ . + - _"),
        ("policies: [{name: d, host_keys: [none]}]", "policies[0].host_keys[0]: unknown host_key none"),
        ("policies: [{name: d, models: [p, p]}]", "policies[0].models[1]: given twice, first in line 4"),
        ("policies: [{name: d, models: [p/none]}]", "policies[0].models[0]: unknown model none"),
        ("policies: [{name: d, models: [none/m]}]", "unknown provider none: add it to providers"),
        ("policies: [{name: d, models: ['p/m@none']}]", "unknown host none: add it to hosts"),
        ("policies: [{name: d, models: ['@none']}]", "unknown host none"),
        ("policies: [{name: d, models: ['p@']}]", "expected provider, provider/model, provider/model@host"),
        ("policies: [{name: d, models: ['/m']}]", "expected provider, provider/model"),
        ("policies: [{name: d, models: ['']}]", "expected provider, provider/model"),
        ("policies: [{name: d, key_selection: best}]", "expected one of prioritized, round-robin, least-re"),
        ("pricing: [{name: x, currency: usd}]", "expected a currency's three capital letters, as USD"),
        ("pricing: [{name: x, currency: EUR}]", "expected USD, which RELAY_CURRENCY says is counted here"),
        (
            "pricing: [{name: x, rates: [{meter: words, per_million: 1}]}]",
            "rates[0].meter: expected one of input",
        ),
        ("pricing: [{name: x, rates: [{meter: input}]}]", "pricing[0].rates[0]: per_million is missing"),
        (
            "pricing: [{name: x, rates: [{meter: input, per_million: 1}, {meter: input, per_million: 2}]}]",
            "pricing[0].rates[1]: given twice, first in line 4",
        ),
        ("rate_limits: [{name: l, rules: [{meter: requests, amount: 0}]}]", "whole number from 1 to"),
        ("rate_limits: [{name: l, rules: [{meter: requests, amount: 1.5}]}]", "whole number from 1 to"),
        (
            "rate_limits: [{name: l, rules: [{meter: requests, amount: 5}]}]",
            "requests needs window_seconds and",
        ),
        (
            "rate_limits: [{name: l, rules: [{meter: concurrency, amount: 5, window_seconds: 1}]}]",
            "rules[0]: concurrency counts what runs now: it takes no window_seconds and no strategy",
        ),
        (
            "rate_limits: [{name: l, rules: [{meter: requests, amount: 5, window_seconds: 1, strategy: leaky}]}]",
            "strategy: expected one of fixed-window, sliding-window, token-bucket",
        ),
        ("host_keys: [{name: k, host: h}]", "host_keys[0]: expected value_from or value, one of them"),
        ("host_keys: [{name: k, host: h, value: abc, value_from: {env: X}}]", "value_from or value, one of"),
        (
            "host_keys: [{name: k, host: h, value_from: {env: 'sk-secret'}}]",
            "the name of an environment variable",
        ),
        ("host_keys: [{name: k, host: h, value_from: sk-secret}]", "value_from: expected a mapping with env"),
        ("host_keys: [{name: k, host: h, value: 'sk-secret\n'}]", "ASCII characters without blanks"),
        ("host_keys: [{name: k, host: h, value: [sk-secret]}]", "expected text: put it in quotes"),
        ("projects: [{name: s, team: t, included_usage: {amount: -1}}]", "an amount that is not negative"),
        ("projects: [{name: s, team: t, included_usage: {amount: 1, per: day}}]", "expected one of month"),
        (
            "projects: [{name: s, team: t, included_usage: {amount: 1, unpriced_closes: 1}}]",
            "included_usage.unpriced_closes: expected true or false",
        ),
        (
            "projects: [{name: s, team: t, included_usage: {unpriced_closes: true}}]",
            "projects[0].included_usage: amount is missing",
        ),
        ("<<: {teams: []}", "the file: unknown field <<"),
        ("? [a]\n: b", "the file: unknown field ?"),
    ],
)
def test_each_mistake_is_named_with_its_line(file: Path, row: str, message: str) -> None:
    first, *_ = problems(file, f"{GOOD}{row}\n")
    assert first.startswith("line 4: ")
    assert message in first
    assert "sk-secret" not in first


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("{name: n, provider: none}", "models[1].provider: unknown provider none"),
        ("{name: m, provider: p}", "model m is given twice, first in line 3"),
        (f"{{name: {'x' * 301}, provider: p}}", "models[1].name: expected 1-300 characters"),
        ('{name: "\\ud800", provider: p}', "models[1].name: expected text without lone surrogates"),
        ('{name: "\\0", provider: p}', "models[1].name: expected 1-300 characters, none of them NUL"),
        ("{name: n, provider: p, aliases: [a, a]}", "alias a is given twice, first in line 3"),
        ("{name: n, provider: p, aliases: ['*a']}", "aliases[0]: expected at most one *, as the last"),
        ("{name: n, provider: p, bindings: [{host: none, adapter: openai}]}", "unknown host none"),
        ("{name: n, provider: p, bindings: [{host: h, adapter: grpc}]}", "adapter: expected one of openai"),
        ("{name: n, provider: p, bindings: [{host: h}]}", "models[1].bindings[0]: adapter is missing"),
        ("{name: n, provider: p, bindings: [{host: h, adapter: openai, pricing: x}]}", "unknown pricing x"),
        (
            "{name: n, provider: p, bindings: [{host: h, adapter: openai}, {host: h, adapter: openai}]}",
            "models[1].bindings[1]: given twice",
        ),
    ],
)
def test_a_wrong_model_is_named(file: Path, model: str, message: str) -> None:
    (only,) = problems(file, GOOD.replace("provider: p}]", f"provider: p}}, {model}]"))
    assert only.startswith("line 3: ")
    assert message in only


def test_an_alias_is_one_models_in_the_whole_catalog(file: Path) -> None:
    other = Model.objects.create(name="other", provider=Provider.objects.create(name="q"))
    other.aliases.create(pattern="taken", wildcard=True)
    text = GOOD.replace("name: m,", "name: m, aliases: ['taken*'],")
    assert problems(file, text) == ["line 3: models[0].aliases[0]: model other has the alias taken* already"]


def test_all_problems_are_found_at_once(file: Path) -> None:
    text = "teams:\n- name: 5\n- nam: x\nhosts:\n- name: a/b\n  base_url: ftp://x\nprojects:\n- {name: s, team: none}\n"
    assert problems(file, text) == [
        "line 2: teams[0].name: expected text: put it in quotes",
        "line 3: teams[1]: name is missing",
        "line 3: teams[1]: unknown field nam: known are enabled, name",
        "line 5: hosts[0].name: expected a name without / and @",
        "line 6: hosts[0].base_url: expected a URL that starts with http:// or https:// and names a host",
        "line 8: projects[0].team: unknown team none: add it to teams",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a mapping of sections"),
        ("- providers", "expected a mapping of sections"),
        ("providers: [", "line 1: no YAML: while parsing"),
        ("teams: []\n---\nteams: []\n", "line 2: no YAML: expected a single document"),
        (
            "teams: &t [{name: a}]\nusers: *t\n",
            "line 2: no YAML: aliases (*name) are not taken: write it out",
        ),
        ("teams: &t [*t]\n", "line 1: no YAML: aliases (*name) are not taken"),
        ("teams:\n  - name: \x07\n", "line 2: no YAML: a control character stands here"),
        (b"teams: []\n# \xff\n", "line 2: expected UTF-8"),
        ("[" * 5000, "nested too deeply"),
        ("teams: !!python/object:os.system [x]", "teams[0]: expected a mapping"),
        ("teams: [{name: !!python/name:os.system x}]", "teams[0].name: expected text"),
    ],
)
def test_what_is_no_catalog_is_one_line(file: Path, text: str | bytes, message: str) -> None:
    (only,) = problems(file, text)
    assert message in only


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"teams": [}', "line 1: no JSON: Expecting value"),
        ('{"teams": []} x', "no JSON: Extra data"),
        ("teams: []", "no JSON: Expecting value"),
        (
            '{"pricing": [{"name": "x", "rates": [{"meter": "input", "per_million": NaN}]}]}',
            "NaN is no number",
        ),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_json_file_must_be_json(tmp_path: Path, text: str, message: str) -> None:
    (only,) = problems(tmp_path / "catalog.JSON", text)
    assert message in only


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CatalogRejected, match="the file cannot be read: No such file or directory"):
        apply_catalog(tmp_path / "none.yaml")
    with pytest.raises(CatalogRejected, match="the file cannot be read: Is a directory"):
        apply_catalog(tmp_path)


def test_a_secret_cannot_be_stored_without_a_master_key(file: Path, settings: Settings) -> None:
    settings.RELAY_MASTER_KEY = ""
    text = f"{GOOD}host_keys: [{{name: k, host: h, value: sk-secret}}]\n"
    assert problems(file, text) == ["RELAY_MASTER_KEY is not set: expected 32 random bytes in base64"]
    assert not Host.objects.exists()


def a_second_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_second_run_waits_for_the_first_and_then_finds_nothing_to_do(file: Path) -> None:
    file.write_text(GOOD)

    def second() -> int:
        try:
            return len(apply_catalog(file))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert len(apply_catalog(file)) == 3
            changes = pool.submit(second)
            deadline = time.monotonic() + 30
            while not a_second_waits():
                assert time.monotonic() < deadline
                assert not changes.done()
        assert changes.result(30) == 0


def test_the_command_names_file_and_line_and_exits_with_1(file: Path, shell: Shell) -> None:
    file.write_text("teams: [{name: 5}]\nhost: []\n")
    code, out, err = shell.run("apply", str(file))
    assert (code, out) == (1, "")
    first, second = err.splitlines()
    assert first == f"{file}:1: teams[0].name: expected text: put it in quotes"
    assert second.startswith(f"{file}:2: the file: unknown field host: known are ")


def test_with_json_all_problems_are_one_line_on_stderr(file: Path, shell: Shell) -> None:
    file.write_text("teams: [{name: 5}]\nhost: []\n")
    first, second = shell.error_line("apply", str(file)).split("; ")
    assert first == f"{file}:1: teams[0].name: expected text: put it in quotes"
    assert second.startswith(f"{file}:2: the file: unknown field host: known are ")


def test_a_file_that_cannot_be_read_is_one_line_of_the_command(tmp_path: Path, shell: Shell) -> None:
    path = tmp_path / "none.yaml"
    assert (
        shell.error_line("apply", str(path)) == f"{path}: the file cannot be read: No such file or directory"
    )
