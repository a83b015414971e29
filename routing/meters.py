"""The meters of a token count: four wholes that never overlap, and parts of two of them."""

from __future__ import annotations

WHOLES = ("input", "cache_read", "cache_write", "output")
WHOLE_OF_PART = {"reasoning": "output", "cache_write_5m": "cache_write", "cache_write_1h": "cache_write"}
METERS = (*WHOLES, *WHOLE_OF_PART)
