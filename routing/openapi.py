"""The OpenAPI operations of the catalog and of tokens."""

from __future__ import annotations

from relaybatch.http.openapi import LOGGED_IN, Content, Operation, json_response
from routing.token_views import MintRequest, RevokeRequest, RevokeResponse, TokenResponse
from routing.views import ModelObjectList

_TOKEN_ERRORS = (403, 411, 413)

_MODELS = Operation(
    method="get",
    path="/v1/models",
    operation_id="list_models",
    tag="Models",
    summary="The models that the caller may use",
    responses={200: json_response("All of them, by name.", ModelObjectList)},
)
_MINT = Operation(
    method="post",
    path="/api/auth/token",
    operation_id="create_token",
    tag="Tokens",
    summary="Mint an inference token for the person who is logged in",
    security=LOGGED_IN,
    body=Content(schema=MintRequest, examples={"half_an_hour": {"ttl": "30m"}}),
    body_required=False,
    responses={200: json_response("The token, shown this once.", TokenResponse)},
    errors=_TOKEN_ERRORS,
)


def _revoke(path: str, operation_id: str) -> Operation:
    return Operation(
        method="post",
        path=path,
        operation_id=operation_id,
        tag="Tokens",
        summary="Revoke one token of the person who is logged in, or all of them",
        security=LOGGED_IN,
        body=Content(schema=RevokeRequest),
        body_required=False,
        responses={200: json_response("How many were revoked.", RevokeResponse)},
        errors=_TOKEN_ERRORS,
    )


OPERATIONS = (
    _MODELS,
    _MINT,
    _revoke("/api/auth/token/revoke", "revoke_tokens"),
    _revoke("/api/auth/revoke", "revoke_tokens_alias"),
)
