"""How views that return DRF's Response write JSON."""

from __future__ import annotations

import json

from msgspec import Struct

from relaybatch.http.error_responses import JsonRenderer


class Answer(Struct):
    text: str
    cost: int | None


def test_a_struct_is_compact_json_in_the_order_of_its_fields() -> None:
    assert JsonRenderer().render(Answer(text="größer", cost=None)) == '{"text":"größer","cost":null}'.encode()


def test_separators_that_javascript_took_for_line_ends_are_escaped() -> None:
    body = JsonRenderer().render(Answer(text="a\u2028b\u2029c", cost=1))
    assert body == rb'{"text":"a\u2028b\u2029c","cost":1}'
    assert json.loads(body)["text"] == "a\u2028b\u2029c"
