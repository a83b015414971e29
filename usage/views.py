"""The usage routes: the caller's own events under /v1, everybody's under /api."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.http import HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from rest_framework.response import Response

from relaybatch.http.api_view import MethodCheckBeforeAuth
from relaybatch.http.query_params import QueryParams
from usage.authentication import OperatorAuthentication
from usage.included_usage import included_usage
from usage.models import UsageEvent
from usage.reporting.pagination import fetch_page, iterate_pages
from usage.reporting.queries import events_query, series_query, summary_query
from usage.reporting.reports import summary, timeseries
from usage.reporting.serializers import UsageEventList, csv_lines, event_object

if TYPE_CHECKING:
    from rest_framework.request import Request

    from routing.credentials.credential import Credential
    from usage.models import UsageEventQuerySet
    from usage.reporting.queries import EventsQuery


class UsageView(MethodCheckBeforeAuth):
    """The base of the usage routes: which events are visible to the caller."""

    def visible_events(self) -> UsageEventQuerySet:
        return UsageEvent.objects.visible_to(cast("Credential", self.request.auth))


class Events(UsageView):
    """The caller's own events, newest first: pages of JSON, or all of them as CSV in one stream."""

    def get(self, request: Request) -> HttpResponseBase:
        query = events_query(request, now=timezone.now())
        events = self.visible_events()
        if query.as_csv:
            return _csv_response(events, query=query)
        page, next_cursor = fetch_page(events, query=query)
        return Response(
            UsageEventList(events=[event_object(event) for event in page], next_cursor=next_cursor)
        )


class Summary(UsageView):
    """The sums of the caller's own events, for each group."""

    def get(self, request: Request) -> Response:
        query = summary_query(request, now=timezone.now())
        return Response(summary(self.visible_events(), query=query))


class Included(MethodCheckBeforeAuth):
    """The allowance of the caller's project in the current month, and what it has used."""

    def get(self, request: Request) -> Response:
        QueryParams(request, known=())
        return Response(included_usage(cast("Credential", request.auth).project_id))


class OperatorUsageView(UsageView):
    authentication_classes = [OperatorAuthentication]

    def visible_events(self) -> UsageEventQuerySet:
        return UsageEvent.objects.all()


class AllEvents(OperatorUsageView, Events):
    """Everybody's events, for operators."""


class AllSummary(OperatorUsageView, Summary):
    """The sums of everybody's events, for operators."""


class AllTimeseries(OperatorUsageView):
    """The sums of everybody's events in each interval, for operators."""

    def get(self, request: Request) -> Response:
        query = series_query(request, now=timezone.now())
        return Response(timeseries(self.visible_events(), query=query))


def _csv_response(events: UsageEventQuerySet, *, query: EventsQuery) -> StreamingHttpResponse:
    pages = iter([fetch_page(events, query=query)[0]]) if query.limit else iterate_pages(events, query=query)
    return StreamingHttpResponse(
        csv_lines(pages),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="usage-events.csv"'},
    )
