"""The 409 «has not ended yet»: what a dialect says to a request for results, retry or delete before the end. Relay's
results have no such rule: they may be read at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relaybatch.http.errors import Conflict

if TYPE_CHECKING:
    from batches.models import Batch


def require_ended(batch: Batch, *, then: str) -> None:
    """Raise Conflict while the batch has not ended, or the files with its results are not written yet.

    `then`: what the caller can do about it.
    """
    if not batch.is_done:
        raise not_ended(batch, then=then)


def not_ended(batch: Batch, *, then: str) -> Conflict:
    if batch.ended_at:
        return Conflict("The files with the results of this batch are being written; try again in a moment.")
    return Conflict(f"This batch has not ended yet; {then}.")
