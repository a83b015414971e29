"""What keeps the workers of a parallel run of these tests apart."""

from __future__ import annotations

import os

from django.conf import settings


def test_the_settings_are_those_of_this_worker() -> None:
    assert os.environ["REDIS_URL"] == settings.REDIS_URL
    assert os.environ["RELAY_BATCH_PAYLOAD_DIR"] == settings.RELAY_BATCH_PAYLOAD_DIR
