"""Cells of a list that say two things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.html import format_html

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


def two_lines(first: str, second: str) -> SafeString:
    """The second beneath the first, and smaller."""
    return format_html('{}<div class="quiet second">{}</div>', first, second)
