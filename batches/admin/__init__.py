"""Admin pages for batches, items and workers. Importing this package registers them."""

from batches.admin import batch, batch_item, worker

__all__ = ["batch", "batch_item", "worker"]
