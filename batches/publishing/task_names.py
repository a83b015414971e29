"""The names of the one task and its queue, as publisher, worker and Celery's settings must agree on them."""

from __future__ import annotations

TASK_NAME = "batches.run_item"
QUEUE_NAME = "items"
