"""A batch's progress: a bar with a segment for each state, the counts as text, and badges of states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.html import format_html, format_html_join

from batches.models import ItemState
from relaybatch.admin.cells import two_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.safestring import SafeString

# Final states first, then running, then waiting.
_ORDER = (
    ItemState.COMPLETED,
    ItemState.DISCARDED,
    ItemState.CANCELLED,
    ItemState.EXPIRED,
    ItemState.RUNNING,
    ItemState.AVAILABLE,
)
_FINAL = _ORDER[:4]


def render_progress(counts: Mapping[str, int], *, total: int) -> SafeString:
    """The bar, with the counts below it."""
    return two_lines(render_progress_bar(counts, total=total), format_counts(counts))


def render_progress_bar(counts: Mapping[str, int], *, total: int) -> SafeString:
    done = sum(counts.get(state, 0) for state in _FINAL)
    shares = [
        (state.value, f"{100 * counts[state] / total:.2f}") for state in _ORDER if total and counts.get(state)
    ]
    parts = format_html_join("", '<span class="state-{}" style="width: {}%"></span>', shares)
    percent = 100 * done // total if total else 0
    return format_html(
        '<span class="progress" role="img" aria-label="{}% final" title="{}">{}</span> <span class="quiet">{}%</span>',
        percent,
        format_counts(counts),
        parts,
        percent,
    )


def format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[state]:,} {state.value}" for state in _ORDER if counts.get(state))


def render_state_badge(state: str) -> SafeString:
    return format_html('<span class="badge state-{}">{}</span>', state, state.replace("_", " "))
