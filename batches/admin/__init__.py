"""Admin pages for batches, items, files and workers. Importing this package registers them."""

from batches.admin import batch, batch_item, file, worker

__all__ = ["batch", "batch_item", "file", "worker"]
