"""A batch's progress as its pages show it."""

from __future__ import annotations

import re

import pytest

from batches.admin.progress import (
    format_counts,
    render_progress,
    render_progress_bar,
    render_state_badge,
)

SEGMENT = re.compile(r'class="state-(\w+)" style="width: ([\d.]+)%"')


def test_counts_are_listed_from_final_to_waiting_without_zeros() -> None:
    counts = {"available": 1200, "completed": 3, "running": 0, "discarded": 1}
    assert format_counts(counts) == "3 completed, 1 discarded, 1,200 available"


def test_the_bar_has_a_segment_for_each_state_that_occurs() -> None:
    html = render_progress_bar({"available": 1, "completed": 2, "running": 1}, total=4)
    assert SEGMENT.findall(html) == [("completed", "50.00"), ("running", "25.00"), ("available", "25.00")]


@pytest.mark.parametrize(
    ("counts", "total", "percent"),
    [
        ({"completed": 1, "discarded": 1, "available": 1}, 3, 66),
        ({"running": 5}, 5, 0),
        ({"completed": 999, "available": 1}, 1000, 99),
        ({"cancelled": 2, "expired": 3}, 5, 100),
        ({}, 0, 0),
    ],
)
def test_only_final_items_count_as_progress(counts: dict[str, int], total: int, percent: int) -> None:
    assert f'aria-label="{percent}% final"' in render_progress_bar(counts, total=total)


def test_the_counts_are_below_the_bar() -> None:
    html = render_progress({"completed": 1}, total=1)
    assert html.endswith('<div class="quiet second">1 completed</div>')


def test_a_state_has_a_badge_of_its_own_class() -> None:
    assert render_state_badge("in_progress") == '<span class="badge state-in_progress">in progress</span>'
