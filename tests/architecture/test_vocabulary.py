"""Names are the field's: words that only this project once knew (old_vocabulary.toml) come back nowhere.

The glossary has the words of today. What is ordinary English elsewhere is looked for in names only.
"""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.test_rooms import FILES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path("tests/architecture")
OLD: dict[str, list[str]] = tomllib.loads((ROOT / HERE / "old_vocabulary.toml").read_text())
NAMES, PARTS, PARTS_OF_NAMES = set(OLD["names"]), set(OLD["parts"]), set(OLD["parts_of_names"])
ALLOWED = re.compile("|".join(OLD["allowed"]), re.IGNORECASE)
FORMS = re.compile("|".join(OLD["forms"]))
OLD_TEXT = re.compile(rf"\b({'|'.join(OLD['texts'])})\b", re.IGNORECASE)

READ = {".css", ".html", ".js", ".lua", ".md", ".py", ".toml", ".yaml"}
# A log of what was, in the words of its time; the lists of this test; clients, written for their own tools.
NOT_READ = re.compile(r"CHANGELOG\.md|tests/architecture/(old|test)_vocabulary\..*|tests/sdks/clients/.*")
TEXTS = [path for path in FILES if path.suffix in READ and not NOT_READ.fullmatch(str(path))]
SOURCES = [path for path in TEXTS if path.suffix == ".py" and "migrations" not in path.parts]


@pytest.mark.parametrize("top", sorted({path.parts[0] for path in SOURCES}))
def test_no_name_is_of_the_old_vocabulary(top: str) -> None:
    paths = [path for path in SOURCES if path.parts[0] == top]
    assert [f"{path}: {name}" for path in paths for name in sorted(names(path)) if is_old(name)] == []


def test_no_file_is_named_in_the_old_vocabulary() -> None:
    assert [str(path) for path in FILES if PARTS & set(parts_of(path.stem))] == []


@pytest.mark.parametrize("top", sorted({path.parts[0] for path in TEXTS}))
def test_no_text_is_of_the_old_vocabulary(top: str) -> None:
    paths = [path for path in TEXTS if path.parts[0] == top]
    assert [found for path in paths for found in old_text(path)] == []


def names(path: Path) -> set[str]:
    tokens = tokenize.generate_tokens(io.StringIO((ROOT / path).read_text()).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def is_old(name: str) -> bool:
    parts = set(parts_of(ALLOWED.sub("", name)))
    if PARTS & parts or name in NAMES:
        return True
    if name.startswith("test_") or ALLOWED.fullmatch(name):
        return False
    return bool(PARTS_OF_NAMES & parts or FORMS.fullmatch(name))


def parts_of(name: str) -> list[str]:
    """`_HTTPError2` → http, error, 2."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]


def old_text(path: Path) -> Iterator[str]:
    for number, line in enumerate((ROOT / path).read_text().splitlines(), start=1):
        if found := OLD_TEXT.search(line):
            yield f"{path}:{number}: {found[0]}"
