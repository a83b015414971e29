"""The OpenAPI operations of the batch routes. Where dialects share a route, each of its answers is listed."""

from __future__ import annotations

from batches.openapi import batches, message_batches

OPERATIONS = (*batches.OPERATIONS, *message_batches.OPERATIONS)
