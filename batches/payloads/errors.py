"""Errors of payload stores. Messages name objects, never their content."""

from __future__ import annotations


class PayloadError(Exception):
    pass


class PayloadReadError(PayloadError):
    """The object is missing, shorter than expected, or its store does not answer."""


class PayloadWriteError(PayloadError):
    """Nothing was stored: the store is full, read-only or unreachable."""


class PayloadStoreUnavailable(PayloadError):  # noqa: N818
    """The store is missing, or is not the one that the other processes of this deployment use."""
