"""Answers of a Messages, Chat Completions, Responses or Embeddings upstream that are chosen by the last prompt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from tests.support.upstream.upstream import Answer, Request

ODD = "line\u2028para\u2029next\u0085 emoji 😀 nul \0 end"
EXTRACTED = {"name": "Ada", "age": 36}
# What inspect_ai requires of a Response, beside what other clients do.
RESPONSE_SETTINGS = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
INPUT_DETAILS = {"cached_tokens": 40, "cache_write_tokens": 0}


def answer(request: Request) -> Answer:
    """`refuse`: an error of Anthropic's form. `hang`: nothing comes. `odd`: ODD. Else the prompt itself."""
    body = request.json()
    text = _prompt(body)
    if text == "refuse":
        error = {"type": "invalid_request_error", "message": "max_tokens: too many"}
        return answers.json({"type": "error", "error": error, "request_id": "req_011"}, status=400)
    if text == "hang":
        return answers.hang()
    said = ODD if text == "odd" else f"echo {text}"
    return answers.body(json.dumps(_whole(request.path, body, said), ensure_ascii=False).encode())


def _prompt(body: dict[str, Any]) -> str:
    """The text of the last message, or of the last input: of a string, a list of parts or a list of strings."""
    value = body["messages"] if "messages" in body else body["input"]
    while not isinstance(value, str):
        last = value[-1]
        value = last if isinstance(last, str) else last.get("content", last.get("text"))
    return value


def _whole(path: str, body: dict[str, Any], said: str) -> dict[str, Any]:
    if path.endswith("/messages"):
        return _message(body, said)
    if path.endswith("/responses"):
        return _response(said)
    if path.endswith("/embeddings"):
        return _embeddings(body)
    return _completion(body, said)


def _message(body: dict[str, Any], text: str) -> dict[str, Any]:
    """A call of the first tool where there is one."""
    content: dict[str, Any] = {"type": "text", "text": text}
    if tools := body.get("tools"):
        content = {"type": "tool_use", "id": "toolu_1", "name": tools[0]["name"], "input": EXTRACTED}
    return answers.MESSAGE | {"content": [content]}


def _completion(body: dict[str, Any], text: str) -> dict[str, Any]:
    """JSON where a format is asked for."""
    content = json.dumps(EXTRACTED) if "response_format" in body else text
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    return answers.CHAT | {"choices": [choice]}


def _response(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    usage: Any = answers.RESPONSE["usage"]
    return (
        answers.RESPONSE
        | RESPONSE_SETTINGS
        | {"output": [message], "usage": usage | {"input_tokens_details": INPUT_DETAILS}}
    )


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """A vector of three numbers for each input, and 7 tokens in all."""
    inputs = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = [
        {"object": "embedding", "index": index, "embedding": [0.5, -0.25, float(index)]}
        for index, _ in enumerate(inputs)
    ]
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    return {"object": "list", "model": body["model"], "data": data, "usage": usage}
