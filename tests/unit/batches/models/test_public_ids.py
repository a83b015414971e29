"""Public ids: as each dialect writes them, and back to the row's id."""

from __future__ import annotations

import uuid

import pytest

from batches.dialects import DIALECTS
from batches.models.public_ids import parse_batch_id, public_id

BATCH_ID = uuid.UUID("01a23139-3968-7806-9cc1-9b308a28188f")


@pytest.mark.parametrize(
    ("dialect", "written"),
    [
        ("relay", "01a23139-3968-7806-9cc1-9b308a28188f"),
        ("chat", "batch_01a23139396878069cc19b308a28188f"),
        ("openai", "batch_01a23139396878069cc19b308a28188f"),
        ("messages", "msgbatch_01a23139396878069cc19b308a28188f"),
    ],
)
def test_an_id_is_written_as_its_dialect_does_and_read_back(dialect: str, written: str) -> None:
    assert public_id(dialect, BATCH_ID) == written
    assert parse_batch_id(written) == BATCH_ID


def test_every_dialect_is_in_the_table_above() -> None:
    assert sorted(DIALECTS) == ["chat", "messages", "openai", "relay"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "batch_",
        "batch_01a23139-3968-7806-9cc1-9b308a28188f",
        "batch_01A23139396878069CC19B308A28188F",
        "batch_01a23139396878069cc19b308a28188",
        "01a23139396878069cc19b308a28188f",
        "01A23139-3968-7806-9cc1-9b308a28188f",
        "msgbatch_01a23139396878069cc19b308a28188g",
        "other_01a23139396878069cc19b308a28188f",
        "batch_msgbatch_01a23139396878069cc19b308a",
    ],
)
def test_what_can_be_no_id_of_ours_is_none(text: str) -> None:
    assert parse_batch_id(text) is None
