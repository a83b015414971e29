"""Host keys that an upstream quotes in its errors."""

from __future__ import annotations

import time

import pytest

from routing.masking import without_secret, without_secrets

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
    assert without_secret(said.encode(), SECRET).decode() == kept


def test_a_word_in_the_place_of_a_key_is_no_secret() -> None:
    assert without_secret(b"none of these", "none") == b"none of these"


@pytest.mark.parametrize("text", [b"*" * 4096, b"." * 4096, b"a" * 4095 + b".", b"!a" * 2048, b"\xff" * 4096])
def test_no_text_takes_long(text: bytes) -> None:
    began = time.process_time()
    without_secret(text, SECRET)
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
    assert without_secrets(said.encode(), ["", value]).decode() == kept
