"""The workers' pages: which processes are alive, and how many items each one runs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.db.models import BooleanField, Count, ExpressionWrapper, Q
from django.db.models.functions import Now

from batches.models import BatchItem, ItemState, Worker
from relaybatch.admin.large_lists import LargeChangeList, LargeListAdmin

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


class WorkerChangeList(LargeChangeList):
    def attach_related(self, rows: list[Worker]) -> None:
        attach_running_counts(rows)


@admin.register(Worker)
class WorkerAdmin(LargeListAdmin):
    """`alive` is computed by the database's clock, as the sweeper does."""

    changelist = WorkerChangeList
    list_display = ("process", "alive", "slots", "running", "started_at", "seen_at")
    ordering = ("-seen_at", "-id")
    fields = ("process", "id", "alive", "slots", "running", "started_at", "seen_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        oldest = Now() - timedelta(seconds=settings.RELAY_WORKER_LOST_S)
        is_alive = ExpressionWrapper(Q(seen_at__gte=oldest), output_field=BooleanField())
        workers: QuerySet[Any] = super().get_queryset(request).annotate(is_alive=is_alive)
        return workers

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Worker | None:
        found: Worker | None = super().get_object(request, object_id, from_field)
        if found is not None:
            attach_running_counts([found])
        return found

    @admin.display(description="process")
    def process(self, worker: Worker) -> str:
        return str(worker)

    @admin.display(description="alive", boolean=True)
    def alive(self, worker: Any) -> bool:
        return bool(worker.is_alive)

    @admin.display(description="items running")
    def running(self, worker: Worker) -> int:
        return int(vars(worker)["running_items"])


def attach_running_counts(workers: list[Worker]) -> None:
    """Count the running items of all of them in one query."""
    items = BatchItem.objects.filter(state=ItemState.RUNNING, worker_id__in=[worker.id for worker in workers])
    counts = dict(items.order_by().values_list("worker_id").annotate(count=Count("*")))
    for worker in workers:
        vars(worker)["running_items"] = counts.get(worker.id, 0)
