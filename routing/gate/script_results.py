"""The shapes of the scripts' results. Any other reply of Redis counts as unavailable: no key is taken from it."""

from __future__ import annotations

from typing import Any

from routing.gate.redis import RedisUnavailable, run_script

# For each script: the first word of a result, and the types of what follows it (the scripts document the meaning).
_RESULT_TYPES: dict[str, dict[bytes, list[type]]] = {
    "admit": {b"admitted": [int, int, int, int], b"limit": [int, int], b"no_key": [int, bytes]},
    "all_closed": {b"all_closed": [int]},
    "next_key": {b"admitted": [int, int, int, int], b"no_key": [int, int, int]},
    "release": {b"released": [int, int, int]},
}


def run_checked_script(name: str, *, plan: bytes, call: dict[str, Any], keys: int) -> list[Any]:
    """Run the script and check its result. `keys`: the number of keys in the plan.

    Raises RedisUnavailable: then it is unknown whether the script ran.
    """
    result = run_script(name, plan=plan, call=call)
    if not _is_valid_result(name, result, keys=keys):
        raise RedisUnavailable("unexpected result")
    return list(result)


def _is_valid_result(name: str, result: Any, *, keys: int) -> bool:
    if not isinstance(result, list) or not result or not isinstance(result[0], bytes):
        return False
    word, *details = result
    if [type(detail) for detail in details] != _RESULT_TYPES[name].get(word):
        return False
    return word != b"admitted" or details[0] in range(1, keys + 1)
