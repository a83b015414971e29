"""What can go wrong with payloads. Messages name objects, never what is in them."""

from __future__ import annotations


class PayloadError(Exception):
    pass


class PayloadReadError(PayloadError):
    """The object is missing, shorter than expected, or its store doesn't answer."""


class PayloadWriteError(PayloadError):
    """Nothing was stored: full, read-only, or out of reach."""


class PayloadStoreUnavailable(PayloadError):  # noqa: N818
    """The store is missing, or is another one than the other processes of this deployment use."""
