"""Answers of a Messages or Chat Completions upstream that are chosen by the last prompt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from tests.support.upstream.upstream import Answer, Request

ODD = "line\u2028para\u2029next\u0085 emoji 😀 nul \0 end"
EXTRACTED = {"name": "Ada", "age": 36}


def answer(request: Request) -> Answer:
    """`refuse`: an error of Anthropic's form. `hang`: nothing comes. `odd`: ODD. Else the prompt itself."""
    body = request.json()
    text = body["messages"][-1]["content"]
    if text == "refuse":
        error = {"type": "invalid_request_error", "message": "max_tokens: too many"}
        return answers.json({"type": "error", "error": error, "request_id": "req_011"}, status=400)
    if text == "hang":
        return answers.hang()
    said = ODD if text == "odd" else f"echo {text}"
    whole = _message(body, said) if request.path.endswith("/messages") else _completion(said)
    return answers.body(json.dumps(whole, ensure_ascii=False).encode())


def _message(body: dict[str, Any], text: str) -> dict[str, Any]:
    """A call of the first tool where there is one."""
    content: dict[str, Any] = {"type": "text", "text": text}
    if tools := body.get("tools"):
        content = {"type": "tool_use", "id": "toolu_1", "name": tools[0]["name"], "input": EXTRACTED}
    return answers.MESSAGE | {"content": [content]}


def _completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return answers.CHAT | {"choices": [choice]}
