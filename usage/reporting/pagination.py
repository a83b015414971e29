"""Read events page by page, newest first; each page begins after the last event of the one before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from usage.reporting.queries import MAX_PAGE_LIMIT, Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from usage.models import UsageEvent, UsageEventQuerySet
    from usage.reporting.queries import EventsQuery


def fetch_page(events: UsageEventQuerySet, *, query: EventsQuery) -> tuple[list[UsageEvent], str | None]:
    """The events, and the cursor of the next page (None on the last). Events added meanwhile come before it."""
    limit = query.limit or MAX_PAGE_LIMIT
    matching = events.matching(query.filter).newest_first()
    if query.cursor:
        matching = matching.older_than(at=query.cursor.at, event_id=query.cursor.id)
    found = list(matching[: limit + 1])
    page = found[:limit]
    return page, _cursor_after(page[-1]).encode() if len(found) > limit else None


def iterate_pages(events: UsageEventQuerySet, *, query: EventsQuery) -> Iterator[list[UsageEvent]]:
    """Yield page after page."""
    # Short queries, not one database cursor: that would hold a snapshot for as long as the client reads.
    more = True
    while more:
        page, next_cursor = fetch_page(events, query=query)
        yield page
        more = next_cursor is not None
        if more:
            query = replace(query, cursor=_cursor_after(page[-1]))


def _cursor_after(event: UsageEvent) -> Cursor:
    return Cursor(at=event.at, id=event.id)
