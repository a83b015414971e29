"""The vendors of docs/vendors/vendors.md: the entries as they stand there, and the requests that they have to make."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "vendors" / "vendors.md"
KEY = "the-vendors-key"
KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})


@dataclass(frozen=True, slots=True)
class ExpectedRequest:
    """What a call of `model` must be at the vendor. `key`: the header that holds the key, none when none is sent."""

    vendor: str
    model: str
    adapter: str
    path: str
    upstream_name: str
    key: dict[str, str]
    headers: dict[str, str] = field(default_factory=dict)


BEARER = {"authorization": f"Bearer {KEY}"}
X_API_KEY = {"x-api-key": KEY}
API_KEY = {"api-key": KEY}
VERSION = {"anthropic-version": "2023-06-01"}
CALLS = (
    ExpectedRequest("OpenAI", "gpt-4.1-mini", "openai", "/v1/chat/completions", "gpt-4.1-mini", BEARER),
    ExpectedRequest("OpenAI", "gpt-5-mini", "openai_responses", "/v1/responses", "gpt-5-mini", BEARER),
    ExpectedRequest(
        "OpenAI",
        "text-embedding-3-small",
        "openai_embeddings",
        "/v1/embeddings",
        "text-embedding-3-small",
        BEARER,
    ),
    ExpectedRequest(
        "Anthropic", "claude-haiku-4-5", "anthropic", "/v1/messages", "claude-haiku-4-5", X_API_KEY, VERSION
    ),
    ExpectedRequest(
        "Azure OpenAI",
        "gpt-4o-on-azure",
        "openai",
        "/openai/deployments/our-gpt-4o/chat/completions?api-version=2024-10-21",
        "our-gpt-4o",
        API_KEY,
    ),
    ExpectedRequest(
        "Azure OpenAI", "gpt-4.1-on-azure", "openai", "/openai/v1/chat/completions", "our-gpt-4.1", API_KEY
    ),
    ExpectedRequest(
        "Azure OpenAI",
        "embedding-on-azure",
        "openai_embeddings",
        "/openai/deployments/our-embedding/embeddings?api-version=2024-10-21",
        "our-embedding",
        API_KEY,
    ),
    ExpectedRequest(
        "Azure OpenAI",
        "embedding-on-azure-v1",
        "openai_embeddings",
        "/openai/v1/embeddings",
        "our-embedding",
        API_KEY,
    ),
    ExpectedRequest(
        "Gemini", "gemini-2.5-flash", "openai", "/v1beta/openai/chat/completions", "gemini-2.5-flash", BEARER
    ),
    ExpectedRequest("Z.ai", "glm-4.7", "openai", "/api/paas/v4/chat/completions", "glm-4.7", BEARER),
    ExpectedRequest("Perplexity", "sonar-pro", "openai", "/chat/completions", "sonar-pro", BEARER),
    ExpectedRequest(
        "OpenRouter",
        "gpt-4o-by-openrouter",
        "openai",
        "/api/v1/chat/completions",
        "openai/gpt-4o",
        BEARER,
        {"http-referer": "https://example.com", "x-title": "Example"},
    ),
    ExpectedRequest(
        "DeepSeek", "deepseek-v4-flash", "openai", "/v1/chat/completions", "deepseek-v4-flash", BEARER
    ),
    ExpectedRequest(
        "DeepSeek",
        "deepseek-v4-flash-messages",
        "anthropic",
        "/anthropic/v1/messages",
        "deepseek-v4-flash",
        X_API_KEY,
        VERSION,
    ),
    ExpectedRequest(
        "Groq", "llama-3.3-70b", "openai", "/openai/v1/chat/completions", "llama-3.3-70b-versatile", BEARER
    ),
    ExpectedRequest(
        "Mistral", "mistral-small-latest", "openai", "/v1/chat/completions", "mistral-small-latest", BEARER
    ),
    ExpectedRequest(
        "Mistral", "mistral-embed", "openai_embeddings", "/v1/embeddings", "mistral-embed", BEARER
    ),
    ExpectedRequest(
        "Together", "gpt-oss-20b", "openai", "/v1/chat/completions", "openai/gpt-oss-20b", BEARER
    ),
    ExpectedRequest(
        "Together",
        "e5-large-by-together",
        "openai_embeddings",
        "/v1/embeddings",
        "intfloat/multilingual-e5-large-instruct",
        BEARER,
    ),
    ExpectedRequest("Voyage", "voyage-3.5", "openai_embeddings", "/v1/embeddings", "voyage-3.5", BEARER),
    ExpectedRequest(
        "vLLM",
        "llama-3-8b",
        "openai",
        "/v1/chat/completions",
        "NousResearch/Meta-Llama-3-8B-Instruct",
        {},
    ),
    ExpectedRequest(
        "vLLM",
        "e5-mistral-7b",
        "openai_embeddings",
        "/v1/embeddings",
        "intfloat/e5-mistral-7b-instruct",
        {},
    ),
    ExpectedRequest("Ollama", "gpt-oss-20b-here", "openai", "/v1/chat/completions", "gpt-oss:20b", {}),
    ExpectedRequest("Ollama", "all-minilm-here", "openai_embeddings", "/v1/embeddings", "all-minilm", {}),
)


def entries() -> dict[str, str]:
    """The page's YAML by the headings that they stand under."""
    sections = re.split(r"^## (.+)\n", PAGE.read_text(), flags=re.MULTILINE)[1:]
    found: dict[str, str] = {}
    for vendor, text in zip(sections[::2], sections[1::2], strict=True):
        found[vendor], *_ = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return found


def at(entry: str, origin: str) -> str:
    """The entry with another origin in each base URL, and nothing else changed."""
    return re.sub(r'(base_url: ")https?://[^/"]+', lambda found: found[1] + origin, entry)


def variables(entry: str) -> list[Any]:
    return re.findall(r"env: (\w+)", entry)
