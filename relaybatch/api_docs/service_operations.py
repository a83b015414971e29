"""The OpenAPI operations of the service itself."""

from __future__ import annotations

from relaybatch.health import Health, Readiness
from relaybatch.http.openapi import PUBLIC, Operation, json_response

_TAG = "Service"

OPERATIONS = (
    Operation(
        method="get",
        path="/healthz",
        operation_id="get_health",
        tag=_TAG,
        summary="Whether this process answers",
        security=PUBLIC,
        responses={200: json_response("It does.", Health)},
    ),
    Operation(
        method="get",
        path="/readyz",
        operation_id="get_readiness",
        tag=_TAG,
        summary="Whether what this process needs is available",
        security=PUBLIC,
        responses={
            200: json_response("Everything is available.", Readiness),
            503: json_response("Something is not; `checks` says what.", Readiness),
        },
    ),
    Operation(
        method="get",
        path="/openapi.json",
        operation_id="get_openapi",
        tag=_TAG,
        summary="This document",
        security=PUBLIC,
        responses={200: json_response("The document.", {"type": "object"})},
    ),
)
