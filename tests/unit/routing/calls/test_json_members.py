"""Finding the top-level members of a JSON object without reading it into values."""

from __future__ import annotations

import json
import sys
import time

import pytest

from routing.calls.json_members import has_one_model, replace_model


@pytest.mark.parametrize(
    ("body", "one"),
    [
        (b'{"model":"x"}', True),
        (b'{"model":"x","messages":[{"model":"y"}]}', True),
        (b'{"model":"x","a":"model"}', True),
        (b'{"model":"x","model":"y"}', False),
        (b'{"model":"x","\\u006dodel":"y"}', False),
        (b'{"m\\u006Fdel":"x","mode\\u006c":"y"}', False),
        (b'{"\\u006dodel":"x"}', True),
        (b'{"model":"x","text":"\\u006d \\u00e9 \\"model\\""}', True),
        (b'{"model":"x","text":"\\\\u006dodel"}', True),
        (b'{"model":"x","Model":"y"}', False),
        (b'{"MODEL":"y","model":"x"}', False),
        (b'{"model":"x","mOdEl" : null}', False),
        (b'{"model":"x","\\u004dodel":"y"}', False),
        (b'{"model":"x","mod\\u0045l":"y"}', False),
        (b'{"\\u006d\\u006f\\u0064\\u0065\\u006c":"x","\\u004D\\u004F\\u0044\\u0045\\u004C":"y"}', False),
        (b'{"a":{"model":1,"Model":2},"model":"x","b":[{"Model":"y"}]}', True),
        (b'{"a":{"model":1,"Model":2},"model":"x","b":[{"Model":"y"}],"MODEL":1}', False),
        (b'{"Model":"y","a":{"model":1,"Model":2},"model":"x","b":[{"Model":"y"}]}', False),
        (b'{"model":"x","a":"Model","b":["model","MODEL"]}', True),
        (b'{"model":"x","a":"\\"Model\\":","b":"\\\\","c":"Model"}', True),
        (b'{"model":"x","a\\"Model":1}', True),
        (b'{"model":"x","a\\\\":1,"Model":1}', False),
        (b'{"model":"x"\n,\t"Model"\r\n:1}', False),
        (b'{"model":"x","models":1,"Models":2,"xmodel":3,"model ":4,"":5}', True),
        ('{"model":"x","\u217fodel":1,"\uff4dodel":2,"mod\u0435l":3,"model\u0301":4}'.encode(), True),
    ],
)
def test_two_models_are_found_in_any_spelling(body: bytes, one: bool) -> None:
    assert has_one_model(body) is one


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"x"}', b'{"model":"up/1"}'),
        (b'{"a":{"model":"x"}, "model" :  "x" ,"b":1e3}', b'{"a":{"model":"x"}, "model" :  "up/1" ,"b":1e3}'),
        (
            b'{"\\u006dodel":"x\\"y","n":123456789012345678901234567890}',
            b'{"\\u006dodel":"up/1","n":123456789012345678901234567890}',
        ),
        ('{"t":"\u2028\\u0000","model":"x"}'.encode(), '{"t":"\u2028\\u0000","model":"up/1"}'.encode()),
    ],
)
def test_only_the_value_of_the_top_level_model_is_replaced(body: bytes, expected: bytes) -> None:
    assert replace_model(body, "up/1") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"Model":"a","model":"x"}', b'{"Model":"a","model":"up"}'),
        (b'{"model":"x","MODEL":"a"}', b'{"model":"up","MODEL":"a"}'),
        (
            b'{"a":[{"model":"x"},{"model":"x"}],"b":{"Model":"x"},"model":"x","c":[{"model":"x"}]}',
            b'{"a":[{"model":"x"},{"model":"x"}],"b":{"Model":"x"},"model":"up","c":[{"model":"x"}]}',
        ),
        (b'{"a":"model","b\\"model":"x","model":"x"}', b'{"a":"model","b\\"model":"x","model":"up"}'),
        (b'{"model":"\\"x\\\\","a":{"model":1}}', b'{"model":"up","a":{"model":1}}'),
    ],
)
def test_it_is_the_key_that_is_exactly_model_whose_value_is_replaced(body: bytes, expected: bytes) -> None:
    assert replace_model(body, "up") == expected


def test_no_letter_of_another_script_is_one_of_models_in_another_case() -> None:
    """What `routing.calls.json_members` looks for is made of ASCII alone, since nothing else folds to it."""
    beyond = [chr(code) for code in range(0x80, sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    folded = {"".join(form(letter)) for letter in beyond for form in (str.casefold, str.lower, str.upper)}
    assert not {text for text in folded if text and set(text.lower()) <= set("model")}


def test_an_upstream_name_is_written_as_json() -> None:
    assert json.loads(replace_model(b'{"model":"x"}', 'a"b\\é\u2028')) == {"model": 'a"b\\é\u2028'}


@pytest.mark.parametrize("body", [b'{"a":{"model":1}}', b'{"a":1}', b'{"Model":"a","b":{"model":"c"}}'])
def test_replacing_a_model_that_is_not_there_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match="no model"):
        replace_model(body, "x")


def test_depth_costs_no_stack() -> None:
    body = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b',"model":"x"}'

    assert replace_model(body, "y").endswith(b',"model":"y"}')


@pytest.mark.parametrize("key", [b"Model", b"model"])
@pytest.mark.parametrize("count", [2, 3, 7, 100])
def test_a_second_model_is_found_wherever_it_stands_among_nested_ones(key: bytes, count: int) -> None:
    nested = [b'"%d":{"model":1}' % number for number in range(count)]
    for place in range(count + 1):
        members = [*nested[:place], b'"%b":"y"' % key, *nested[place:]]
        alone, first, last = ([b'"model":"x"'], [b'"model":"x"', *members], [*members, b'"model":"x"'])
        assert has_one_model(b"{" + b",".join([*nested[:place], *alone, *nested[place:]]) + b"}")
        assert not has_one_model(b"{" + b",".join(first) + b"}")
        assert not has_one_model(b"{" + b",".join(last) + b"}")


@pytest.mark.parametrize("piece", [b"A", b"\\n", b'\\"', b"\\\\"])
def test_ten_megabytes_in_one_string_are_passed_over_in_one_go(piece: bytes) -> None:
    body = b'{"a":[{"b":"' + piece * (10_000_000 // len(piece)) + b'"}],"model":"x"}'
    started = time.monotonic()

    assert replace_model(body, "y").endswith(b'"model":"y"}')
    assert time.monotonic() - started < 2, "seeking byte by byte, or back, takes minutes"
