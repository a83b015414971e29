"""Celery runs items and nothing else, and every task is named, so that renaming a module breaks no message."""

from __future__ import annotations

import pytest
from celery import current_app


@pytest.mark.django_db  # a worker looks at Django's checks before it loads tasks, and one reads the database
def test_the_one_task_is_named_and_routed_to_its_queue() -> None:
    current_app.loader.import_default_modules()
    ours = [name for name in current_app.tasks if not name.startswith("celery.")]
    assert ours == ["batches.run_item"]
    assert [queue.name for queue in current_app.conf.task_queues] == ["items"]


def test_acknowledgements_are_off_for_messages_are_hints() -> None:
    assert current_app.conf.broker_transport_options["ack_emulation"] is False
    assert current_app.conf.task_ignore_result is True
