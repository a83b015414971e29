"""The admin's pages for batches, items and workers; importing this registers them."""

from batches.admin import batches, items, workers

__all__ = ["batches", "items", "workers"]
