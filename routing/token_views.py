"""Inference tokens for a person who is logged in: `POST /api/auth/token`, `POST /api/auth/token/revoke`."""

from __future__ import annotations

import codecs
import logging
import uuid
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import msgspec
from rest_framework.response import Response

from relaybatch.db.clock import database_now
from relaybatch.http.api_view import MethodCheckBeforeAuth
from relaybatch.http.errors import Forbidden, InvalidRequest, Unavailable
from relaybatch.http.timestamps import Timestamp
from routing.credentials.session_authentication import SessionLoginAuthentication, read_body
from routing.credentials.tokens import (
    DEFAULT_TTL_SECONDS,
    TokenDenied,
    mint_token,
    revoke_all_tokens,
    revoke_token,
)
from routing.durations import parse_duration
from routing.secrets.encryption import SecretError

if TYPE_CHECKING:
    from rest_framework.request import Request

    from routing.models import Project, User

logger = logging.getLogger(__name__)

B = TypeVar("B", bound=msgspec.Struct)


class MintRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: Annotated[str | None, msgspec.Meta(description="The name of your own project.")] = None
    ttl: Annotated[
        int | str | None,
        msgspec.Meta(description="Seconds (up to a day), or a span as `30m`; an hour by default."),
    ] = None


class RevokeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One token, or all of them without a `jti`."""

    # Null is rejected, lest a slip revoke everything.
    jti: uuid.UUID | msgspec.UnsetType = msgspec.UNSET


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The token is shown this once."""

    token: str
    jti: Annotated[str, msgspec.Meta(extra_json_schema={"format": "uuid"})]
    expires_at: Timestamp
    project: str


class RevokeResponse(msgspec.Struct, frozen=True, kw_only=True):
    revoked: Annotated[int, msgspec.Meta(description="How many tokens were usable until now.")]


class TokenMint(MethodCheckBeforeAuth):
    authentication_classes = [SessionLoginAuthentication]

    def post(self, request: Request) -> Response:
        user = cast("User", request.user)
        mint_request = _parse_body(request, MintRequest)
        project = _own_project(user, mint_request.project)
        try:
            minted = mint_token(
                user, project=project, ttl_seconds=_ttl_seconds(mint_request.ttl), now=database_now()
            )
        except TokenDenied as error:
            raise InvalidRequest(str(error)) from error
        except SecretError as error:
            logger.exception("token signing failed")
            raise Unavailable("no token can be signed now: an operator has to mend the master key") from error
        answer = TokenResponse(**minted.as_json(), project=project.name)
        return Response(answer, headers={"Cache-Control": "no-store"})


class TokenRevoke(MethodCheckBeforeAuth):
    authentication_classes = [SessionLoginAuthentication]

    def post(self, request: Request) -> Response:
        user = cast("User", request.user)
        revoke_request = _parse_body(request, RevokeRequest)
        if isinstance(revoke_request.jti, uuid.UUID):
            revoked = revoke_token(jti=revoke_request.jti, user=user, now=database_now())
        else:
            revoked = revoke_all_tokens(user, now=database_now())
        return Response(RevokeResponse(revoked=revoked))


def _parse_body(request: Request, form: type[B]) -> B:
    """An empty body is `{}`."""
    try:
        body = read_body(request._request).removeprefix(codecs.BOM_UTF8)
        return msgspec.json.decode(body or b"{}", type=form)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the body: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest("the body is no JSON object", code="invalid_json") from error


def _own_project(user: User, name: str | None) -> Project:
    if user.project is None:
        raise Forbidden("you have no project: ask an operator for one")
    if name not in (None, user.project.name):
        raise Forbidden("you may only have tokens of your own project")
    return user.project


def _ttl_seconds(ttl: int | str | None) -> int:
    if ttl is None:
        return DEFAULT_TTL_SECONDS
    if isinstance(ttl, int):
        return ttl
    try:
        return int(parse_duration(ttl).total_seconds())
    except ValueError as error:
        raise InvalidRequest(f"ttl: {error}", param="ttl") from error
