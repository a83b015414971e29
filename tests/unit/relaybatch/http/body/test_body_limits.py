"""The limit of what is read of a rejected body is the largest one of all routes."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

from relaybatch.http.body.body_limits import (
    MAX_FORM_PARTS_BYTES,
    MAX_ITEM_FILTER_BYTES,
    max_body_bytes,
    max_compressed_bytes,
    max_sent_bytes,
)

if TYPE_CHECKING:
    from pytest_django import Settings


@pytest.mark.parametrize(
    ("relay", "custom_id", "file", "largest"),
    [
        (20_000_000, 30_000_000, 1024, 30_000_000),
        (40_000_000, 30_000_000, 1024, 40_000_000),
        (40_000_000, 30_000_000, 50_000_000, 50_000_000 + MAX_FORM_PARTS_BYTES),
        (1024, 1024, 1024, MAX_ITEM_FILTER_BYTES),
    ],
)
def test_the_largest_limit_of_all_routes_counts(
    settings: Settings, relay: int, custom_id: int, file: int, largest: int
) -> None:
    settings.RELAY_MAX_REQUEST_BYTES = relay
    settings.RELAY_CUSTOM_ID_MAX_REQUEST_BYTES = custom_id
    settings.RELAY_MAX_FILE_BYTES = file
    assert max_body_bytes() == largest
    assert max_sent_bytes() == max_compressed_bytes(largest) > largest


@pytest.mark.parametrize("size", [0, 1, 1000, 3_000_000])
def test_what_cannot_be_compressed_is_within_the_compressed_limit(size: int) -> None:
    assert len(gzip.compress(os.urandom(size))) <= max_compressed_bytes(size)
