"""Responses of the upstream: valid bodies of three APIs, each with a unique usage, and failures."""

from __future__ import annotations

import json
from dataclasses import dataclass

FIRST_INPUT = 1_000
"""`input` tokens of response 0. Response n states n more, so the tokens of a usage event identify the response."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of response. `final`: the attempt must end with it; otherwise another key may be tried.

    `usable`: a whole response of this kind completes the item. `before`, `behind`: bytes sent before and after it, with
    a short pause between if `apart`; `twice`: it is sent twice. `missing`: how many bytes it is shorter than its
    Content-Length, or longer if negative.
    """

    status: int
    final: bool
    usable: bool = False
    before: bytes = b""
    behind: bytes = b""
    twice: bool = False
    apart: bool = False
    missing: int = 0


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </hint>\r\n\r\n"


KINDS = {
    "well": Kind(200, final=True, usable=True),
    "slow": Kind(200, final=True, usable=True),
    "no usage": Kind(200, final=True, usable=True),
    "hanging": Kind(0, final=True),
    "cut": Kind(200, final=False, missing=10),
    "reset": Kind(0, final=False),
    "closed": Kind(0, final=False),
    "garbage": Kind(200, final=True),
    "list": Kind(200, final=True),
    "400": Kind(400, final=True),
    "409": Kind(409, final=True),
    "401": Kind(401, final=False),
    "403": Kind(403, final=False),
    "429": Kind(429, final=False),
    "500": Kind(500, final=False),
    "502": Kind(502, final=False),
    "529": Kind(529, final=False),
    "interim": Kind(200, final=True, usable=True, before=INTERIM),
    "interim earlier": Kind(200, final=True, usable=True, before=INTERIM, apart=True),
    "interim alone": Kind(0, final=False, before=INTERIM),
    "interim, then 500": Kind(500, final=False, before=INTERIM, apart=True),
    "junk behind": Kind(200, final=True, usable=True, behind=b"\r\njunk\r\n"),
    "twice": Kind(200, final=True, usable=True, twice=True),
    "twice, later": Kind(200, final=True, usable=True, twice=True, apart=True),
    "longer than it says": Kind(200, final=True, missing=-20),
    "many headers": Kind(200, final=True, usable=True),
}


def tokens_of(number: int) -> tuple[int, int]:
    """Input and output tokens of the response with this number."""
    return FIRST_INPUT + number, 1 + number % 97


def usable_body(path: str, number: int, *, with_usage: bool) -> bytes:
    """Unusual JSON: white space, a number over 64 bits, an escaped NUL, U+2028. It must be stored byte for byte."""
    tokens_in, tokens_out = tokens_of(number)
    if path.endswith("/responses"):
        usage = f'{{"input_tokens": {tokens_in}, "output_tokens": {tokens_out}}}'
        shape = '"object": "response", "status": "completed", "output": []'
    elif path.endswith("/messages"):
        usage = f'{{"input_tokens": {tokens_in}, "output_tokens": {tokens_out}}}'
        shape = '"type": "message", "role": "assistant", "content": [{"type": "text", "text": "yes"}]'
    else:
        usage = f'{{"prompt_tokens": {tokens_in}, "completion_tokens": {tokens_out}}}'
        shape = '"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "yes"}}]'
    odd = '"odd":[1.0, 1180591620717411303424,"\\u0000\u2028é" ]'
    usage_member = f', "usage" : {usage}' if with_usage else ""
    return f'{{ "id": "answer-{number}", {shape}, {odd}{usage_member} }}'.encode()


def error_body(status: int) -> bytes:
    if status == 502:
        return b"<html><body>Bad gateway</body></html>"
    return json.dumps({"error": {"message": f"chaos {status}", "type": "chaos", "code": None}}).encode()


def head(status: int, length: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} Chaos",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()
