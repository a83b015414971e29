"""A batch: one submission of many items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from django.db import models

from batches.models.owner import Owner, owner_id_of
from batches.states import RateLimitMode
from relaybatch.ids import uuid7

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from routing.credentials.credential import Credential

VALIDATING = models.Q(input_file_id__isnull=False, in_progress_at=None, ended_at=None)
FINALIZING = models.Q(input_file_id__isnull=False, ended_at__isnull=False, finalized_at=None)
# The same conditions in SQL, worded as the partial indexes are.
VALIDATING_SQL = "input_file_id IS NOT NULL AND in_progress_at IS NULL AND ended_at IS NULL"
FINALIZING_SQL = "input_file_id IS NOT NULL AND ended_at IS NOT NULL AND finalized_at IS NULL"

ProcessingStatus: TypeAlias = Literal["in_progress", "canceling", "ended"]


class BatchQuerySet(models.QuerySet["Batch"]):
    def owned_by(self, credential: Credential) -> BatchQuerySet:
        """Including those that were deleted and are still being removed."""
        return self.filter(owner__name=credential.owner)

    def listed_for(self, credential: Credential) -> BatchQuerySet:
        """The same, for a list."""
        return self.filter(owner_id=owner_id_of(credential.owner))

    def undeleted(self) -> BatchQuerySet:
        return self.filter(deleted_at=None)

    def visible_to(self, credential: Credential) -> BatchQuerySet:
        return self.owned_by(credential).undeleted()

    def of_dialect(self, *dialects: str) -> BatchQuerySet:
        return self.filter(dialect__in=dialects)

    def newest_first(self) -> BatchQuerySet:
        return self.order_by("-id")

    def older_than(self, batch_id: uuid.UUID) -> BatchQuerySet:
        return self.filter(id__lt=batch_id)

    def newer_than(self, batch_id: uuid.UUID) -> BatchQuerySet:
        return self.filter(id__gt=batch_id)

    def oldest_first(self) -> BatchQuerySet:
        return self.order_by("id")

    def open(self) -> BatchQuerySet:
        return self.filter(ended_at=None)

    def validating(self) -> BatchQuerySet:
        """Their items are still to be read from the file that holds the requests."""
        return self.filter(VALIDATING)

    def finalizing(self) -> BatchQuerySet:
        """They have ended, and the files with their results are still to be written."""
        return self.filter(FINALIZING)

    def deleted(
        self, *, after: tuple[datetime | None, uuid.UUID] | None
    ) -> models.QuerySet[Batch, tuple[datetime | None, uuid.UUID]]:
        """Return `(deleted_at, id)` of deleted batches after that place, the earliest deleted first."""
        rows = self.filter(deleted_at__isnull=False)
        if after:
            deleted_at, batch_id = after
            rows = rows.filter(deleted_at__gte=deleted_at).exclude(deleted_at=deleted_at, id__lte=batch_id)
        return rows.order_by("deleted_at", "id").values_list("deleted_at", "id")


class Batch(models.Model):
    """One submission. `dialect` decides how it is rendered and addressed for the rest of its life.

    Who submitted it is kept as ids without foreign keys: the batch outlives those rows, and the re-check when an item
    runs finds that they are gone.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    dialect = models.CharField(max_length=20)
    shape = models.CharField(max_length=40)
    owner = models.ForeignKey(Owner, on_delete=models.PROTECT, related_name="batches")
    policy_id = models.UUIDField()
    project_id = models.UUIDField(null=True)
    team_id = models.UUIDField(null=True)
    principal_kind = models.CharField(max_length=20)
    principal_id = models.CharField(max_length=40)
    credential_kind = models.CharField(max_length=10)
    credential_id = models.CharField(max_length=40)
    # 0 while the file that holds the requests is being validated.
    total_items = models.PositiveIntegerField()
    max_attempts = models.PositiveSmallIntegerField()
    on_rate_limit = models.CharField(
        max_length=4, choices=[(mode.value, mode.capitalize()) for mode in RateLimitMode]
    )
    metadata = models.JSONField(default=dict)
    # anthropic-version and anthropic-beta of the submission, sent with every item.
    upstream_headers = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    cancel_initiated_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    # Counts by state, set with ended_at: final states never change, so this is no cache that could go stale.
    final_counts = models.JSONField(null=True)
    deleted_at = models.DateTimeField(null=True)
    # The rest is for batches whose requests come in a file. They have no items before `in_progress_at`, and are done
    # only at `finalized_at`, when the files with their results are written: after `ended_at`, or with it where there
    # is nothing to write.
    input_file_id = models.UUIDField(null=True)
    in_progress_at = models.DateTimeField(null=True)
    finalized_at = models.DateTimeField(null=True)
    # What validation found wrong: a list of {"code", "line", "message", "param"}.
    file_errors = models.JSONField(null=True)
    # Chosen when the first line is written, and true from `finalized_at` on: null then where there are no lines.
    output_file_id = models.UUIDField(null=True)
    error_file_id = models.UUIDField(null=True)
    # How long the output files are kept; null: until they are deleted.
    output_lifetime_seconds = models.PositiveIntegerField(null=True)

    objects = BatchQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "batches"
        indexes = [
            models.Index(fields=["owner", "-id"], name="batch_owner_newest"),
            models.Index(fields=["owner", "id"], name="batch_open", condition=models.Q(ended_at=None)),
            models.Index(
                fields=["expires_at"],
                name="batch_expiring",
                condition=models.Q(ended_at=None, expires_at__isnull=False),
            ),
            models.Index(
                fields=["deleted_at"], name="batch_deleted", condition=models.Q(deleted_at__isnull=False)
            ),
            models.Index(fields=["owner", "id"], name="batch_validating", condition=VALIDATING),
            models.Index(fields=["owner", "id"], name="batch_finalizing", condition=FINALIZING),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ended_at=None, final_counts=None)
                | models.Q(ended_at__isnull=False, final_counts__isnull=False),
                name="batch_counts_with_end",
            ),
            models.CheckConstraint(
                condition=models.Q(deleted_at=None) | models.Q(ended_at__isnull=False),
                name="batch_deleted_after_end",
            ),
            # A batch without items is complete by nature. A sweeper of the release before would end one that waits for
            # its validation, while both run during a deploy.
            models.CheckConstraint(
                condition=models.Q(input_file_id=None)
                | models.Q(in_progress_at__isnull=False)
                | models.Q(ended_at=None)
                | models.Q(file_errors__isnull=False)
                | models.Q(cancel_initiated_at__isnull=False)
                | models.Q(ended_at__gte=models.F("expires_at")),
                name="batch_ends_after_validation",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def is_done(self) -> bool:
        """Whether it has ended, and the files with its results are written if it has any."""
        return self.ended_at is not None and (self.input_file_id is None or self.finalized_at is not None)

    @property
    def processing_status(self) -> ProcessingStatus:
        """`in_progress`, then `canceling` between a cancel and the end, then `ended`."""
        if self.ended_at:
            return "ended"
        return "canceling" if self.cancel_initiated_at else "in_progress"
