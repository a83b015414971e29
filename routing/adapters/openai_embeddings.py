"""Embeddings: https://platform.openai.com/docs/api-reference/embeddings/create"""

from __future__ import annotations

from typing import Any

from routing.adapters.adapter import Adapter, as_count, as_mapping, join_path, no_headers, rename_model
from routing.calls.call import Tokens


def usage(reported: Any) -> Tokens | None:
    """`prompt_tokens` is all that is billed. Some vendors add a `completion_tokens` of 0."""
    prompt = as_count(as_mapping(reported).get("prompt_tokens"))
    return None if prompt is None else Tokens(input=prompt, output=0)


ADAPTER = Adapter(
    name="openai_embeddings",
    path=join_path("/v1/embeddings"),
    headers=no_headers,
    body=rename_model,
    usage=usage,
    meters=frozenset({"input"}),
    answer_fields=frozenset({"data"}),
)
