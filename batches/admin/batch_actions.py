"""What operators can do to batches after a confirmation: cancel them, and retry their failed items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from batches.completion.cancel import cancel_batch
from batches.models import Batch
from batches.models.public_ids import public_id
from batches.submission.resubmit import resubmit_as_owner
from relaybatch.admin.confirmed_action import ConfirmedAction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Text = SafeString | str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAction(ConfirmedAction[Batch, Text]):
    """`run` raises ApiError where the batch does not allow it, and returns the text of its own result.

    `summarize` makes one message of all those texts. At most `max_batches` can be selected.
    """

    question_of_many: str
    max_batches: int
    summarize: Callable[[Sequence[Text]], Text]

    def title(self, count: int) -> str:
        return self.question if count == 1 else self.question_of_many.format(count)


def _cancel(batch: Batch, _: Mapping[str, Any]) -> str:
    cancel_batch(batch)
    return ""


def _summarize_cancelled(results: Sequence[Text]) -> str:
    return "The batch is cancelled." if len(results) == 1 else f"{len(results)} batches are cancelled."


def _retry(batch: Batch, _: Mapping[str, Any]) -> SafeString:
    """A link to the new batch."""
    new_id = resubmit_as_owner(batch)
    url = reverse("admin:batches_batch_change", args=[new_id])
    return format_html('<a href="{}">{}</a>', url, public_id(batch.dialect, new_id))


def _summarize_retried(results: Sequence[Text]) -> SafeString:
    links = format_html_join(", ", "{}", ([link] for link in results))
    return format_html("The failed items are tried again: {}.", links)


CANCEL = BatchAction(
    name="cancel",
    question="Cancel this batch?",
    question_of_many="Cancel {} batches?",
    explanation="Waiting items are cancelled at once, running ones are aborted within two seconds. "
    "Items in a final state stay as they are.",
    max_batches=100,
    log_message="Cancelled.",
    run=_cancel,
    summarize=_summarize_cancelled,
)
RETRY = BatchAction(
    name="retry",
    question="Retry the failed items of this batch?",
    question_of_many="Retry the failed items of {} batches?",
    explanation="The discarded items of each are sent again as a new batch of the same owner, under the credential "
    "and the policy of the old one. What they use is charged as usual.",
    max_batches=20,
    log_message="Failed items retried.",
    run=_retry,
    summarize=_summarize_retried,
)
