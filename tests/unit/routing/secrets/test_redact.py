"""Host keys that an upstream quotes in its errors."""

from __future__ import annotations

import json
import time

import pytest

from routing.secrets.redact import redact_secret, redact_secrets, redact_short_text

SECRET = "sk-ab12cdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            f'{{"message":"Incorrect API key provided: {SECRET}."}}',
            '{"message":"Incorrect API key provided: ***."}',
        ),
        ("provided: sk-ab12********wxyz. You can", "provided: ***. You can"),
        ("provided: sk-ab****************wxyz. You", "provided: ***. You"),
        ("provided: ****wxyz.", "provided: ***."),
        ("key=sk-ab12cd…", "key=***"),
        ("cut at its end: sk-ab12", "cut at its end: ***"),
        (f"{SECRET}{SECRET}, Bearer {SECRET}", "******, Bearer ***"),
        ("another's: sk-zz12********wxyz", "another's: sk-zz12********wxyz"),
        ("**bold** and ***, 3**2", "**bold** and ***, 3**2"),
        ("max_tokens is too large: 9.", "max_tokens is too large: 9."),
    ],
)
def test_a_quoted_key_is_masked_and_the_rest_is_kept(said: str, kept: str) -> None:
    assert redact_secret(said.encode(), SECRET).decode() == kept


@pytest.mark.parametrize(
    "spelled",
    [
        *(r"ab+cd\/efgh/ijkl\\m==", r"ab\u002Bcd\u002fefgh\u002Fijkl\u005Cm\u003D\u003D", r"ab\u002Bcd/efgh"),
        *("ab%2Bcd%2Fefgh%2Fijkl%5Cm%3D%3D", r"ab\u002Bcd\/ef********m=="),
    ],
)
def test_a_key_is_masked_however_json_or_a_url_spells_it(spelled: str) -> None:
    """PHP writes `\\/`, .NET and Gson `\\u002B` and `\\u003D`."""
    said = redact_secrets(f'{{"message":"Wrong key: {spelled}"}}'.encode(), ["ab+cd/efgh/ijkl\\m=="])
    assert said.removesuffix(b'=="}').removesuffix(b'"}') == b'{"message":"Wrong key: ***'


@pytest.mark.parametrize("said", [r'{"message":"a\/b \u002B \u0022 \\u002B"}', r"\u00", "\\"])
def test_what_has_no_key_is_kept_as_it_is_spelled(said: str) -> None:
    assert redact_secrets(said.encode(), [SECRET]).decode() == said


@pytest.mark.parametrize(
    "said",
    [
        r'"q\"u<o&t/e\\d"',
        r'"q\u0022u\u003co\u0026t\/e\u005Cd"',
        r'"\"q\\\"u<o&t/e\\\\d\""',
        "q%22u%3Co%26t%2Fe%5Cd",
        "q%22u%3co%26t/e%5cd",
        "q&quot;u&lt;o&amp;t/e\\d",
        "q&#34;u&#x3c;o&#38;t&#x2F;e&#92;d",
    ],
)
def test_no_character_of_a_key_is_revealed_by_its_escape(said: str) -> None:
    masked = redact_secrets(f"Wrong: {said}".encode(), ['q"u<o&t/e\\d']).decode()
    assert masked.strip('"\\ ').removeprefix("Wrong: ").strip('"\\ ') == "***"


def test_what_is_spelled_in_one_way_stays_the_same_json() -> None:
    said = redact_secrets(rf'{{"message":"\u0022{SECRET}\u0022 a\\u002Bb \u002B"}}'.encode(), [SECRET])
    assert json.loads(said) == {"message": '"***" a\\u002Bb +'}


def test_a_word_in_the_place_of_a_key_is_no_secret() -> None:
    assert redact_secret(b"none of these", "none") == b"none of these"


@pytest.mark.parametrize("text", [b"*" * 4096, b"." * 4096, b"a" * 4095 + b".", b"!a" * 2048, b"\xff" * 4096])
def test_no_text_takes_long(text: bytes) -> None:
    began = time.process_time()
    redact_secret(text, SECRET)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("value", "said", "kept"),
    [
        ("Basic dXNlcjpwdw==", "no dXNlcjpwdw==, Basic dXNlcjpwdw==", "no ***==, ***"),
        ("session=abcdefghij; theme=dark", "session abcdefghij is over", "session *** is over"),
        ("Bearer abcdefghij", "Bearer is missing", "Bearer is missing"),
        ("short", "short", "short"),
    ],
)
def test_each_part_of_a_header_that_could_be_a_secret_is_masked(value: str, said: str, kept: str) -> None:
    assert redact_secrets(said.encode(), ["", value]).decode() == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("req_0123456789abcdef", "req_0123456789abcdef"),
        ("", ""),
        ("0198cca5-bcf4-7e45-ab3c-a0b8888ca69b", "0198cca5-bcf4-7e45-ab3c-a0b8888ca69b"),
        (f"req_{SECRET}", "req_***"),
        ("sk-ab12", "***"),
        ("sk-ab12********wxyz", "***"),
        ("%73k%2Dab12cdef", "%73k%2Dab12cdef"),
        ("sk%2Dab12cdef", "***"),
        ("for:dXNlcjpwYXNzd29yZA==", "for:***=="),
        ("theme=dXNlcj", "theme=***"),
        ("Basic", "Basic"),
    ],
)
def test_a_short_text_is_masked_as_an_error_body_is(said: str, kept: str) -> None:
    values = (SECRET, "Basic dXNlcjpwYXNzd29yZA==")
    assert redact_short_text(said, values) == kept
    assert redact_secrets(said.encode(), values).decode() == kept
