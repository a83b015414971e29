"""The OpenAPI operations of the usage routes."""

from __future__ import annotations

from relaybatch.http.openapi import (
    CREDENTIAL,
    JSON,
    OPERATOR,
    Content,
    Operation,
    Response,
    Schema,
    json_response,
    query,
)
from usage.included_usage import IncludedUsage
from usage.reporting.queries import (
    COLUMN_BY_FILTER,
    COLUMN_BY_GROUP,
    INTERVALS,
    MAX_PAGE_LIMIT,
    MAX_POINTS,
    SOURCES,
    STATUS_CLASSES,
)
from usage.reporting.reports import UsageSummary, UsageTimeseries
from usage.reporting.serializers import CSV_FIELDS, UsageEventList

_TAG = "Usage"
_FILTERS = (
    *(
        query(name, "Only these, separated by commas.")
        for name in (*COLUMN_BY_FILTER, "status")
        if name != "source"
    ),
    query("source", f"Only these, separated by commas: {', '.join(SOURCES)}."),
    query("status_class", f"Only these, separated by commas: {', '.join(STATUS_CLASSES)}."),
    query("since", "How far back, as 30m, 1h or 7d; not together with `from`."),
    query("from", "Events from this time on.", type="string", format="date-time"),
    query("to", "Events before this time.", type="string", format="date-time"),
)
_GROUP_BY = query("group_by", f"One or more of {', '.join(COLUMN_BY_GROUP)}, separated by commas.")
_CSV_FILE = Content(
    schema={"type": "string", "description": f"A line of names ({', '.join(CSV_FIELDS)}), then one an event."}
)


def _events(path: str, operation_id: str, security: tuple[Schema, ...], *, whose: str) -> Operation:
    return Operation(
        method="get",
        path=path,
        operation_id=operation_id,
        tag=_TAG,
        summary=f"{whose} usage events, newest first",
        description="Pages of JSON, or with `format=csv` or `Accept: text/csv` all of them in one stream.",
        security=security,
        parameters=(
            *_FILTERS,
            query("limit", "Events on a page.", type="integer", minimum=1, maximum=MAX_PAGE_LIMIT),
            query("cursor", "The `next_cursor` of an earlier answer."),
            query("format", "Overrides `Accept`.", type="string", enum=["json", "csv"]),
        ),
        responses={
            200: Response(
                description="A page of events, or a file.",
                content={JSON: Content(schema=UsageEventList), "text/csv": _CSV_FILE},
            )
        },
        errors=_errors(security),
    )


def _summary(path: str, operation_id: str, security: tuple[Schema, ...], *, whose: str) -> Operation:
    return Operation(
        method="get",
        path=path,
        operation_id=operation_id,
        tag=_TAG,
        summary=f"What {whose} usage events add up to, for each group",
        description="Of the last 30 days unless the query says otherwise; of named batches of all time.",
        security=security,
        parameters=(*_FILTERS, _GROUP_BY),
        responses={200: json_response("A row a group, the most expensive first.", UsageSummary)},
        errors=_errors(security),
    )


def _errors(security: tuple[Schema, ...]) -> tuple[int, ...]:
    """A session of somebody who is not staff is a 403."""
    return (403,) if security is OPERATOR else ()


_INCLUDED = Operation(
    method="get",
    path="/v1/usage/included",
    operation_id="get_included_usage",
    tag=_TAG,
    summary="What the caller's project may use in the current month, and has used",
    responses={200: json_response("The month.", IncludedUsage)},
)
_TIMESERIES = Operation(
    method="get",
    path="/api/usage/timeseries",
    operation_id="get_all_usage_timeseries",
    tag=_TAG,
    summary="What everybody's usage events add up to in each interval",
    security=OPERATOR,
    parameters=(
        *_FILTERS,
        _GROUP_BY,
        query(
            "interval",
            f"At most {MAX_POINTS} of them in the requested time.",
            type="string",
            enum=list(INTERVALS),
            default="1h",
        ),
    ),
    responses={200: json_response("A row a group with its points.", UsageTimeseries)},
    errors=_errors(OPERATOR),
)

OPERATIONS = (
    _events("/v1/usage/events", "list_usage_events", CREDENTIAL, whose="The caller's"),
    _summary("/v1/usage/summary", "get_usage_summary", CREDENTIAL, whose="the caller's"),
    _INCLUDED,
    _events("/api/usage/events", "list_all_usage_events", OPERATOR, whose="Everybody's"),
    _summary("/api/usage/summary", "get_all_usage_summary", OPERATOR, whose="everybody's"),
    _TIMESERIES,
)
