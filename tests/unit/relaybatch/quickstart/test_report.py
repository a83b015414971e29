"""What `make run` prints, and what it reads before it starts anything."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from relaybatch.quickstart import procfile
from relaybatch.quickstart.demo import report
from relaybatch.quickstart.demo.catalog import write_catalog
from relaybatch.quickstart.demo.demo_secrets import DemoSecrets, load_secrets, save_relay_key
from relaybatch.quickstart.demo.environment import demo_environment

ROOT = Path(__file__).resolve().parents[4]
KEPT = DemoSecrets(secret_key="s", master_key="m", admin_password="p")


def status(counts: dict[str, int], *, cost_nanos: int | None = 0, **tokens: int) -> dict[str, Any]:
    usage = {"tokens": tokens, "cost_nanos": cost_nanos, "currency": "USD", "unpriced": 0}
    return {"TotalItems": sum(counts.values()), "counts": counts, "usage": usage}


def test_progress_counts_what_is_final_over_all_batches() -> None:
    line = report.progress_line([status({"completed": 2, "running": 1}), status({"discarded": 1})])
    assert line == "[######################........] 3/4 items: 2 completed, 1 discarded, 1 running"


def test_totals_add_up_tokens_and_cost_without_the_parts_of_a_whole() -> None:
    first = report.FinishedBatch(
        name="a.json",
        status=status({"completed": 2}, cost_nanos=1_500_000, input=10, output=5, reasoning=2),
        results=[],
    )
    second = report.FinishedBatch(
        name="b.json", status=status({"completed": 1}, cost_nanos=500_999, cache_read=3), results=[]
    )
    assert [line.split() for line in report.totals([first, second])[1:]] == [
        ["a.json", "2", "2", "completed", "15", "0.001500", "USD"],
        ["b.json", "1", "1", "completed", "3", "0.000500", "USD"],
        ["total", "3", "3", "completed", "18", "0.002000", "USD"],
    ]


def test_an_unpriced_batch_makes_the_total_unpriced() -> None:
    batches = [
        report.FinishedBatch(name="a", status=status({"completed": 1}, cost_nanos=None), results=[]),
        report.FinishedBatch(name="b", status=status({"completed": 1}, cost_nanos=5), results=[]),
    ]
    assert report.totals(batches)[-1].split()[-1] == "unpriced"


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"choices": [{"message": {"role": "assistant", "content": "a"}}]}, "a"),
        ({"output": [{"type": "message", "content": [{"type": "output_text", "text": "b"}]}]}, "b"),
        ({"type": "message", "content": [{"type": "text", "text": "c"}]}, "c"),
        ({"choices": None}, ""),
        (None, ""),
    ],
)
def test_the_text_of_an_answer_is_found_in_each_shape(response: object, text: str) -> None:
    assert report.answer_text(response) == text


def test_a_results_table_shows_tokens_cost_answers_and_errors() -> None:
    results = [
        {
            "idx": 0,
            "state": "completed",
            "response": {"content": [{"text": "You said:\nhello"}]},
            "usage": {"tokens": {"input": 7, "cache_read": 2, "output": 4}, "cost_nanos": 540_000},
        },
        {"idx": 1, "state": "discarded", "error": "batch item: upstream status 400"},
    ]
    table = report.results_table(
        report.FinishedBatch(name="a.json", status=status({"completed": 2}), results=results)
    )
    assert [line.split() for line in table] == [
        ["a.json"],
        ["idx", "state", "in", "out", "cost", "answer"],
        ["0", "completed", "9", "4", "0.000540", "USD", "You", "said:", "hello"],
        ["1", "discarded", "0", "0", "unpriced", "batch", "item:", "upstream", "status", "400"],
    ]


def test_the_printed_curl_line_survives_a_shell() -> None:
    lines = report.next_steps(
        base_url="http://h", relay_key="sk-rb-x", admin=("admin", "pw"), logs=Path("/logs")
    )
    arguments = shlex.split(next(line for line in lines if line.startswith("try")))[1:]
    assert arguments[:4] == ["curl", "http://h/v1/batches", "-H", "Authorization: Bearer sk-rb-x"]
    assert json.loads(arguments[5])["shape"] == "openai"


def test_the_procfile_names_three_simple_commands() -> None:
    commands = procfile.commands(ROOT / "Procfile")
    assert {name: command[0] for name, command in commands.items()} == {
        "web": "python",
        "worker": "celery",
        "sweeper": "python",
    }
    assert not set("".join("".join(command) for command in commands.values())) & set("$&|;<>*`\"'")


def test_what_is_set_wins_over_what_is_kept(tmp_path: Path) -> None:
    given = {"SECRET_KEY": "mine", "RELAY_MASTER_KEY_FILE": "/a/file", "ALLOWED_HOSTS": "", "PATH": "/bin"}
    made = demo_environment(given, home=tmp_path, port=8123, secrets=KEPT)
    assert made["SECRET_KEY"] == "mine"
    assert "RELAY_MASTER_KEY" not in made
    assert made["ALLOWED_HOSTS"] == "127.0.0.1,localhost,[::1]"
    assert made["PORT"] == "8123"
    assert made["PATH"].endswith(":/bin")


def test_secrets_are_made_once_and_closed_to_others(tmp_path: Path) -> None:
    made = load_secrets(tmp_path)
    save_relay_key(tmp_path, relay_key="sk-rb-x")
    again = load_secrets(tmp_path)
    assert (again.secret_key, again.master_key, again.relay_key) == (
        made.secret_key,
        made.master_key,
        "sk-rb-x",
    )
    assert (tmp_path / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert made.secret_key not in repr(made)


def test_the_catalog_points_at_the_echo_of_this_start(tmp_path: Path) -> None:
    catalog = written_catalog(tmp_path, {})
    assert [host["base_url"] for host in catalog["hosts"]] == ["http://127.0.0.1:7"]
    assert [policy["host_keys"] for policy in catalog["policies"]] == [["echo"]]


def test_real_hosts_are_there_once_their_keys_are_set_and_the_keys_are_not_written(tmp_path: Path) -> None:
    catalog = written_catalog(tmp_path, {"OPENAI_API_KEY": "sk-secret", "ANTHROPIC_API_KEY": "sk-other"})
    assert [host["name"] for host in catalog["hosts"]] == ["echo", "openai", "anthropic"]
    assert catalog["policies"][0]["host_keys"] == ["echo", "openai", "anthropic"]
    assert "sk-" not in json.dumps(catalog)


def test_the_samples_use_models_of_the_demo_catalog() -> None:
    catalog = yaml.safe_load((ROOT / "examples" / "catalog.yaml").read_text())
    adapters = {model["name"]: model["bindings"][0]["adapter"] for model in catalog["models"]}
    samples = [json.loads(path.read_text()) for path in (ROOT / "examples").glob("*.json")]
    assert sorted(sample["shape"] for sample in samples) == ["anthropic", "openai", "openai_responses"]
    for sample in samples:
        assert {adapters[item["model"]] for item in sample["requests"]} == {sample["shape"]}


def written_catalog(folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    path = folder / "catalog.json"
    write_catalog(path, examples=ROOT / "examples", echo_url="http://127.0.0.1:7", environment=environment)
    content: dict[str, Any] = json.loads(path.read_text())
    return content
