"""What operators do to batches, each asked about first: cancelling, and retrying what failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse
from django.utils.html import format_html, format_html_join

from batches.completion.cancel import cancel_batch
from batches.models.public_ids import public_id
from batches.submission.resubmit import resubmit_as_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.utils.safestring import SafeString

    from batches.models import Batch


@dataclass(frozen=True, slots=True)
class Deed:
    """`do`: to one batch; gives words for `told`, which sums up what was done. Raises ApiError where it can't be done.

    `at_most`: so many batches at once.
    """

    name: str
    title_of_one: str
    title_of_many: str
    explanation: str
    at_most: int
    log: str
    do: Callable[[Batch], SafeString | str]
    told: Callable[[Sequence[SafeString | str]], SafeString | str]

    def title(self, count: int) -> str:
        return self.title_of_one if count == 1 else self.title_of_many.format(count)


def _cancel(batch: Batch) -> str:
    cancel_batch(batch)
    return ""


def _cancelled(done: Sequence[SafeString | str]) -> str:
    return "The batch is cancelled." if len(done) == 1 else f"{len(done)} batches are cancelled."


def _retry(batch: Batch) -> SafeString:
    new_id = resubmit_as_owner(batch)
    url = reverse("admin:batches_batch_change", args=[new_id])
    return format_html('<a href="{}">{}</a>', url, public_id(batch.dialect, new_id))


def _retried(done: Sequence[SafeString | str]) -> SafeString:
    return format_html(
        "The failed items are tried again: {}.", format_html_join(", ", "{}", ([one] for one in done))
    )


CANCEL = Deed(
    name="cancel",
    title_of_one="Cancel this batch?",
    title_of_many="Cancel {} batches?",
    explanation="Waiting items are cancelled at once, running ones are stopped within two seconds. "
    "What is final stays as it is.",
    at_most=100,
    log="Cancelled.",
    do=_cancel,
    told=_cancelled,
)
RETRY = Deed(
    name="retry",
    title_of_one="Retry the failed items of this batch?",
    title_of_many="Retry the failed items of {} batches?",
    explanation="The discarded items of each are sent again as a new batch of the same owner, under the credential "
    "and the policy of the old one. What they use is charged as usual.",
    at_most=20,
    log="Failed items retried.",
    do=_retry,
    told=_retried,
)
