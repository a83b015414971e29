"""The glossary: one meaning a word, in order, and each word leads to a file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| `(.+?)` \|$", GLOSSARY.read_text(), re.MULTILINE)
# Each of these has had two meanings here. They stand in the glossary with the word that tells which one is meant.
TWO_MEANINGS = {
    "cut",
    "event",
    "key",
    "line",
    "lost",
    "open",
    "pause",
    "place",
    "request",
    "token",
    "watch",
    "window",
}


def test_every_row_has_a_word_a_meaning_and_a_file() -> None:
    lines = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    assert len(lines) - 2 == len(ROWS) > 50


def test_words_are_in_order_and_stand_there_once() -> None:
    words = [word.strip("`").lower() for word, _, _ in ROWS]
    assert words == sorted(set(words))


def test_words_of_two_meanings_are_not_explained_by_themselves() -> None:
    assert not {word for word, _, _ in ROWS} & TWO_MEANINGS


def test_no_meaning_is_followed_by_another_one() -> None:
    assert [word for word, meaning, _ in ROWS if re.search(r"[;.] (also|of an?) ", meaning.lower())] == []


def test_files_that_the_glossary_names_exist() -> None:
    assert [path for _, _, path in ROWS if not (ROOT / path).exists()] == []
