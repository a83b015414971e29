"""Response bodies of the demo upstream for three APIs, which repeat the last user message, and for embeddings.

Shapes: https://platform.openai.com/docs/api-reference/chat/object,
https://platform.openai.com/docs/api-reference/responses/object and
https://platform.claude.com/docs/en/api/messages.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relaybatch.quickstart.demo.echo_embeddings import embedding_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CHARACTERS_PER_TOKEN = 4
CACHED_BLOCK = 16
"""Reported tokens of the system prompt that were read from a cache are a multiple of this."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    prompt: int
    cached: int
    completion: int
    reasoning: int


def chat_completion(body: dict[str, Any]) -> dict[str, Any]:
    messages = _objects(body.get("messages"))
    text, counts = _echo(messages, system=_texts_of_role(messages, ("system", "developer")))
    return {
        "id": _identifier("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": counts.prompt,
            "completion_tokens": counts.completion,
            "total_tokens": counts.prompt + counts.completion,
            "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": counts.reasoning,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "service_tier": "default",
        "system_fingerprint": "fp_echo",
    }


def response(body: dict[str, Any]) -> dict[str, Any]:
    given = body.get("input")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else _objects(given)
    system = _text(body.get("instructions")) or _texts_of_role(messages, ("system", "developer"))
    text, counts = _echo(messages, system=system)
    return {
        "id": _identifier("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": body["model"],
        "output": [_output_message(text)],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _response_usage(counts),
        "user": None,
        "metadata": {},
    }


def _output_message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": _identifier("msg_"),
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def _response_usage(counts: TokenCounts) -> dict[str, Any]:
    return {
        "input_tokens": counts.prompt,
        "input_tokens_details": {"cached_tokens": counts.cached},
        "output_tokens": counts.completion,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.prompt + counts.completion,
    }


def message(body: dict[str, Any]) -> dict[str, Any]:
    text, counts = _echo(_objects(body.get("messages")), system=_text(body.get("system")))
    return {
        "id": _identifier("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": counts.prompt - counts.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": counts.cached,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": counts.completion,
            "service_tier": "standard",
        },
    }


def openai_error(text: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}}


def anthropic_error(text: str) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": text},
        "request_id": _identifier("req_"),
    }


@dataclass(frozen=True, slots=True)
class Route:
    answer: Callable[[dict[str, Any]], dict[str, Any]]
    error: Callable[[str], dict[str, Any]]


ROUTES: Mapping[str, Route] = {
    "/v1/chat/completions": Route(answer=chat_completion, error=openai_error),
    "/v1/responses": Route(answer=response, error=openai_error),
    "/v1/embeddings": Route(answer=embedding_list, error=openai_error),
    "/v1/messages": Route(answer=message, error=anthropic_error),
}


def _echo(messages: list[dict[str, Any]], *, system: str) -> tuple[str, TokenCounts]:
    last_message = next(
        (_text(one.get("content")) for one in reversed(messages) if one.get("role") == "user"), ""
    )
    answer = f"You said: {last_message}"
    all_text = "".join(_text(one.get("content")) for one in messages)
    completion = _tokens(answer)
    counts = TokenCounts(
        prompt=_tokens(all_text if system in all_text else system + all_text),
        cached=_tokens(system) // CACHED_BLOCK * CACHED_BLOCK if system else 0,
        completion=completion,
        reasoning=completion // 4,
    )
    return answer, counts


def _texts_of_role(messages: list[dict[str, Any]], roles: tuple[str, ...]) -> str:
    return "".join(_text(one.get("content")) for one in messages if one.get("role") in roles)


def _text(content: object) -> str:
    """The text of a message's content: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    return " ".join(str(part["text"]) for part in _objects(content) if isinstance(part.get("text"), str))


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _tokens(text: str) -> int:
    return max(1, len(text) // CHARACTERS_PER_TOKEN)


def _identifier(prefix: str) -> str:
    return prefix + secrets.token_hex(12)


def encode_json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode()
