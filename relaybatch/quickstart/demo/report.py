"""Format the demo's output: progress, results, totals and next steps. Pure functions, no I/O."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

FINAL_STATES = ("completed", "discarded", "cancelled", "expired")
BAR_WIDTH = 30
ANSWER_WIDTH = 52
MAX_ROWS = 20
NANOS = 1_000_000_000
EXAMPLE = {
    "shape": "openai",
    "requests": [{"model": "demo-chat", "messages": [{"role": "user", "content": "hello"}]}],
}


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """An example batch that has ended: its file's name, its status and its results as the API returned them."""

    name: str
    status: dict[str, Any]
    results: list[dict[str, Any]]


def progress_line(statuses: Sequence[dict[str, Any]]) -> str:
    counts = count_states(statuses)
    total = sum(int(status["TotalItems"]) for status in statuses)
    final = sum(counts[state] for state in FINAL_STATES)
    filled = BAR_WIDTH * final // total
    state_counts = ", ".join(f"{counts[state]} {state}" for state in sorted(counts, key=_state_order))
    return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {final}/{total} items: {state_counts}"


def count_states(statuses: Iterable[dict[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for status in statuses:
        counts.update(status["counts"])
    return counts


def results_table(batch: FinishedBatch) -> list[str]:
    rows = [f"{'idx':>5}  {'state':<10} {'in':>5} {'out':>5}  {'cost':>14}  answer"]
    rows += [_row(result, currency=_currency(batch.status)) for result in batch.results[:MAX_ROWS]]
    hidden = len(batch.results) - MAX_ROWS
    return [batch.name, *rows, *([f"        and {hidden} more"] if hidden > 0 else [])]


def totals(batches: Sequence[FinishedBatch]) -> list[str]:
    rows = [f"{'sample':<16} {'items':>5}  {'states':<22} {'tokens':>7}  {'cost':>14}"]
    rows += [_totals_row(batch.name, [batch]) for batch in batches]
    return [*rows, _totals_row("total", batches)]


def next_steps(*, base_url: str, relay_key: str, admin: tuple[str, str], logs: Path) -> list[str]:
    body = json.dumps(EXAMPLE, separators=(",", ":"))
    bearer = shlex.quote(f"Authorization: Bearer {relay_key}")
    return [
        f"Serving on {base_url} until Ctrl-C.",
        "",
        f"key    {relay_key}",
        f"try    curl {base_url}/v1/batches -H {bearer} -d {shlex.quote(body)}",
        f"admin  {base_url}/admin/   first login: {' / '.join(admin)}",
        f"logs   {logs}",
    ]


def _row(result: dict[str, Any], *, currency: str) -> str:
    usage = result.get("usage") or {}
    tokens = usage.get("tokens") or {}
    prompt = sum(tokens.get(meter, 0) for meter in ("input", "cache_read", "cache_write"))
    text = result.get("error") or answer_text(result.get("response"))
    cost = format_money(usage.get("cost_nanos"), currency=currency)
    return (
        f"{result['idx']:>5}  {result['state']:<10} {prompt:>5} {tokens.get('output', 0):>5}  {cost:>14}  "
        f"{shorten(text)}"
    )


def _totals_row(name: str, batches: Sequence[FinishedBatch]) -> str:
    counts = count_states(batch.status for batch in batches)
    usages = [batch.status["usage"] for batch in batches]
    tokens = sum(
        usage["tokens"].get(meter, 0)
        for usage in usages
        for meter in ("input", "cache_read", "cache_write", "output")
    )
    costs = [usage["cost_nanos"] for usage in usages]
    nanos = None if None in costs else sum(costs)
    state_counts = ", ".join(f"{counts[state]} {state}" for state in sorted(counts, key=_state_order))
    cost = format_money(nanos, currency=_currency(batches[0].status))
    return f"{name:<16} {counts.total():>5}  {state_counts:<22} {tokens:>7}  {cost:>14}"


def answer_text(response: object) -> str:
    """The text of a response in any of the three shapes; empty if there is none."""
    match response:
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            return text
        case {"output": [{"content": [{"text": str(text)}, *_]}, *_]}:
            return text
        case {"content": [{"text": str(text)}, *_]}:
            return text
    return ""


def format_money(nanos: int | None, *, currency: str) -> str:
    """Format an amount with six decimal places, truncated; `unpriced` for None."""
    if nanos is None:
        return "unpriced"
    return f"{nanos // NANOS}.{nanos % NANOS // 1000:06d} {currency}"


def shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= ANSWER_WIDTH else f"{line[: ANSWER_WIDTH - 1]}…"


def _currency(status: dict[str, Any]) -> str:
    return str(status["usage"]["currency"])


def _state_order(state: str) -> tuple[int, str]:
    return (FINAL_STATES.index(state) if state in FINAL_STATES else len(FINAL_STATES), state)
