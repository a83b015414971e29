"""The OpenAPI operations of batches and files. Where dialects share a route, each of its answers is listed."""

from __future__ import annotations

from batches.openapi import batches, files, message_batches

OPERATIONS = (*batches.OPERATIONS, *message_batches.OPERATIONS, *files.OPERATIONS)
