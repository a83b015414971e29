"""The registry of adapters, by the name that bindings and items carry. One file for each (see adapter.py)."""

from routing.adapters import anthropic, openai, openai_embeddings, openai_responses
from routing.adapters.adapter import Adapter

ADAPTERS: dict[str, Adapter] = {
    adapter.name: adapter
    for adapter in (openai.ADAPTER, openai_responses.ADAPTER, openai_embeddings.ADAPTER, anthropic.ADAPTER)
}

__all__ = ["ADAPTERS", "Adapter"]
