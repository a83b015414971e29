from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING

from routing.resolution.unusable_log import log_unusable, mark_usable

if TYPE_CHECKING:
    import pytest


def test_a_row_is_logged_once_for_each_problem_that_begins(caplog: pytest.LogCaptureFixture) -> None:
    row, other = uuid.uuid4(), uuid.uuid4()
    with caplog.at_level(logging.WARNING):
        for message in ("no value", "no value", "no file"):
            log_unusable(row, message)
        log_unusable(other, "no value")
        mark_usable(row)
        log_unusable(row, "no file")
    assert {record.getMessage() for record in caplog.records} == {"catalog row unusable"}
    reasons = [record.__dict__["reason"] for record in caplog.records]
    assert reasons == ["no value", "no file", "no value", "no file"]
