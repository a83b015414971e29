"""`GET /v1/models`: what a caller may use of the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct
from rest_framework.response import Response

from relaybatch.http.api_view import MethodCheckBeforeAuth
from relaybatch.http.timestamps import EpochSeconds
from routing.resolution.available_models import available_models

if TYPE_CHECKING:
    from rest_framework.request import Request

    from routing.credentials.credential import Credential
    from routing.models import Model


class ModelObject(Struct, frozen=True, kw_only=True):
    """A model that the caller may use, as OpenAI lists it."""

    id: str
    object: Literal["model"]
    created: EpochSeconds
    owned_by: str


class ModelObjectList(Struct, frozen=True, kw_only=True):
    object: Literal["list"]
    data: list[ModelObject]


class ModelList(MethodCheckBeforeAuth):
    """The models that the caller's policy grants and its host keys reach.

    In OpenAI's form: https://platform.openai.com/docs/api-reference/models/list
    """

    def get(self, request: Request) -> Response:
        credential = cast("Credential", request.auth)
        models = available_models(credential.policy_id) if credential.policy_id else []
        return Response(ModelObjectList(object="list", data=[_model_object(model) for model in models]))


def _model_object(model: Model) -> ModelObject:
    # A UUIDv7 begins with the milliseconds at which the row was made.
    created = (model.id.int >> 80) // 1000
    return ModelObject(id=model.name, object="model", created=created, owned_by=model.provider.name)
