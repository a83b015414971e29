"""What the scripts answer. Anything else is no answer of theirs: it takes no key, and tells nothing."""

from __future__ import annotations

from typing import Any

from routing.gate.redis import RedisUnavailable, run_script

# By script: the first word, and the types of what follows it (the scripts say what that means).
_NONE: dict[bytes, list[type]] = {b"none": [int, int, int]}
_RESULT_TYPES: dict[str, dict[bytes, list[type]]] = {
    "admit": {b"admitted": [int, int, int], b"limit": [int, int], b"closed": [int, bytes]},
    "move": {b"admitted": [int, int, int, int], **_NONE},
    "finish": _NONE,
}


def run_checked_script(name: str, *, plan: bytes, call: dict[str, Any], keys: int) -> list[Any]:
    """`keys`: how many the plan has. Raises RedisAway, and then nobody knows whether the script ran."""
    answer = run_script(name, plan=plan, call=call)
    if not _is_valid_result(name, answer, keys=keys):
        raise RedisUnavailable("a wrong answer")
    return list(answer)


def _is_valid_result(name: str, answer: Any, *, keys: int) -> bool:
    if not isinstance(answer, list) or not answer or not isinstance(answer[0], bytes):
        return False
    word, *details = answer
    if [type(detail) for detail in details] != _RESULT_TYPES[name].get(word):
        return False
    return word != b"admitted" or details[0] in range(1, keys + 1)
