"""Cells of a list with two values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.html import format_html

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


def two_lines(first: str, second: str) -> SafeString:
    """Render the second line below the first, in a smaller font."""
    return format_html('{}<div class="quiet second">{}</div>', first, second)
