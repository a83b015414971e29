"""What a caller can ask about the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from relaybatch.http.api_view import MethodCheckBeforeAuth
from routing.resolution.available_models import available_models

if TYPE_CHECKING:
    from rest_framework.request import Request

    from routing.credentials.credential import Credential
    from routing.models import Model


class ModelList(MethodCheckBeforeAuth):
    """The models that the caller's policy grants and its host keys reach, in OpenAI's list form
    (https://platform.openai.com/docs/api-reference/models/list)."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        credential = cast("Credential", request.auth)
        models = available_models(credential.policy_id) if credential.policy_id else []
        return Response({"object": "list", "data": [_model_json(model) for model in models]})


def _model_json(model: Model) -> dict[str, Any]:
    """`created`: when the row was made, which its UUIDv7 begins with (in milliseconds)."""
    created = (model.id.int >> 80) // 1000
    return {"id": model.name, "object": "model", "created": created, "owned_by": model.provider.name}
