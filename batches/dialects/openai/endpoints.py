"""The endpoints that a batch of OpenAI's dialect can call, and the shapes that they stand for."""

from __future__ import annotations

SHAPE_BY_ENDPOINT = {
    "/v1/chat/completions": "openai",
    "/v1/responses": "openai_responses",
    "/v1/embeddings": "openai_embeddings",
}
ENDPOINT_BY_SHAPE = {shape: endpoint for endpoint, shape in SHAPE_BY_ENDPOINT.items()}
