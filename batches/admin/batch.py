"""The batches' pages: state, progress, owner, cost and items. Batches can be cancelled and retried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils import timezone
from django.utils.timesince import timesince

from batches.admin.batch_actions import CANCEL, RETRY, BatchAction
from batches.admin.batch_files import FILE_FIELDS, FILE_FIELDSET, BatchFilesMixin
from batches.admin.display_names import DisplayNames, filter_by_id_or_owner, load_display_names
from batches.admin.filters import DialectFilter, OwnerFilter, ProjectFilter, StateFilter
from batches.admin.item_page import item_page
from batches.admin.progress import format_counts, render_progress, render_state_badge
from batches.dialects.openai.batch import batch_status
from batches.models import Batch
from batches.models.public_ids import parse_batch_id, public_id
from batches.results.status import BatchStatus, batch_statuses
from relaybatch.admin.cells import two_lines
from relaybatch.admin.confirmed_action import AffectedRow, Confirmation, confirmation_page
from relaybatch.admin.large_lists import LargeChangeList, LargeListAdmin
from relaybatch.db.snapshot import one_snapshot
from relaybatch.http.errors import ApiError
from routing.money import format_amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

_MORE_FIELDS = (
    *("batch", "dialect", "shape", "total_items", "waiting", "max_attempts", "on_rate_limit", "metadata"),
    *("principal_kind", "principal_id", "credential_kind", "credential_id"),
)


@dataclass(frozen=True, slots=True)
class BatchDetails:
    """What the pages show of a batch beside its columns."""

    status: BatchStatus
    names: DisplayNames


class BatchChangeList(LargeChangeList):
    def attach_related(self, rows: list[Batch]) -> None:
        attach_details(rows)


@admin.register(Batch)
class BatchAdmin(BatchFilesMixin, LargeListAdmin):
    changelist = BatchChangeList
    change_form_template = "admin/batches/batch/change_form.html"
    list_display = (
        "batch_and_dialect",
        "state",
        "progress",
        "owner_name",
        "project_and_policy",
        "cost",
        "age",
    )
    list_display_links = ("batch_and_dialect",)
    list_filter = (StateFilter, DialectFilter, OwnerFilter, ProjectFilter)
    list_select_related = ("owner",)
    list_per_page = 50
    search_fields = ("id",)
    search_help_text = "A batch's id, the beginning of a key, or the exact name of a service account or user"
    ordering = ("-id",)
    actions = ("cancel_selected", "retry_selected")
    fieldsets = (
        (None, {"fields": (("state", "progress"), ("cost", "tokens"), ("owner_name", "policy", "project"))}),
        ("Times", {"fields": (("created_at", "ended_at"), ("expires_at", "cancel_initiated_at"))}),
        ("More", {"classes": ["collapse"], "fields": _MORE_FIELDS}),
    )
    readonly_fields = (
        *("state", "progress", "cost", "tokens", "owner_name", "policy", "project"),
        *("created_at", "ended_at", "expires_at", "cancel_initiated_at", *_MORE_FIELDS, *FILE_FIELDS),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Batch | None = None) -> Any:
        first, *rest = super().get_fieldsets(request, obj)
        return (first, *([FILE_FIELDSET] if obj and obj.input_file_id else []), *rest)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(deleted_at=None)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Batch | None:
        found: Batch | None = super().get_object(request, object_id, from_field)
        if found is not None:
            attach_details([found])
        return found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return filter_by_id_or_owner(queryset, search_term, parse_id=parse_batch_id), False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("batches.change_batch"))

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view
        return [
            path("<uuid:batch_id>/cancel/", view(self.cancel), name="batches_batch_cancel"),
            path("<uuid:batch_id>/retry/", view(self.retry), name="batches_batch_retry"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        batch_id = parse_batch_id(object_id)
        with one_snapshot():
            more = {
                "items": item_page(batch_id, request.GET) if batch_id else None,
                "may_operate": self.has_operate_permission(request),
                "may_view_items": request.user.has_perm("batches.view_batchitem"),
                "may_view_payloads": request.user.has_perm("batches.view_payload"),
            }
            return super().change_view(request, object_id, form_url, more | (extra_context or {}))

    def cancel(self, request: HttpRequest, batch_id: Any) -> HttpResponse:
        return self._run_on_one(request, batch_id, CANCEL)

    def retry(self, request: HttpRequest, batch_id: Any) -> HttpResponse:
        return self._run_on_one(request, batch_id, RETRY)

    @admin.action(description="Cancel the selected batches", permissions=["operate"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self._run_on_selected(request, queryset, CANCEL)

    @admin.action(description="Retry the failed items of the selected batches", permissions=["operate"])
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self._run_on_selected(request, queryset, RETRY)

    def _run_on_one(self, request: HttpRequest, batch_id: Any, action: BatchAction) -> HttpResponse:
        """Show the confirmation page on GET; run the action on POST."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        batch = self.get_object(request, str(batch_id))
        if batch is None:
            raise Http404
        if request.method != "POST":
            return self._confirm(request, action, [batch])
        self._run(request, action, [batch])
        return HttpResponseRedirect(reverse("admin:batches_batch_change", args=[batch.pk]))

    def _run_on_selected(
        self, request: HttpRequest, queryset: QuerySet[Any], action: BatchAction
    ) -> HttpResponse | None:
        """Show the confirmation page until the POST says `confirmed`. None: Django shows the list again."""
        batches = list(queryset.select_related("owner")[: action.max_batches + 1])
        if len(batches) > action.max_batches:
            messages.error(request, f"Select at most {action.max_batches} batches.")
            return None
        if "confirmed" not in request.POST:
            selection = [
                ("action", f"{action.name}_selected"),
                *((ACTION_CHECKBOX_NAME, str(batch.pk)) for batch in batches),
            ]
            return self._confirm(request, action, attach_details(batches), hidden_inputs=selection)
        self._run(request, action, batches)
        return None

    def _confirm(
        self,
        request: HttpRequest,
        action: BatchAction,
        batches: Sequence[Batch],
        *,
        hidden_inputs: Sequence[tuple[str, str]] = (),
    ) -> HttpResponse:
        confirmation = Confirmation(
            title=action.title(len(batches)),
            cancel_url=reverse("admin:batches_batch_changelist"),
            affected_rows=[_affected_row(batch) for batch in batches],
            hidden_inputs=[*hidden_inputs, ("confirmed", "yes")],
        )
        context = {**self.admin_site.each_context(request), "opts": self.opts}
        return confirmation_page(request, action, confirmation, context=context)

    def _run(self, request: HttpRequest, action: BatchAction, batches: Iterable[Batch]) -> None:
        results = []
        for batch in batches:
            try:
                results.append(action.run(batch, {}))
            except ApiError as error:
                messages.error(request, f"{self.batch(batch)}: {error}")
            else:
                self.log_change(request, batch, action.log_message)
        if results:
            messages.success(request, action.summarize(results))

    @admin.display(description="batch")
    def batch(self, batch: Batch) -> str:
        return public_id(batch.dialect, batch.id)

    @admin.display(description="batch")
    def batch_and_dialect(self, batch: Batch) -> SafeString:
        return two_lines(self.batch(batch), batch.dialect)

    @admin.display(description="project, policy")
    def project_and_policy(self, batch: Batch) -> SafeString:
        return two_lines(self.project(batch), self.policy(batch))

    @admin.display(description="state")
    def state(self, batch: Batch) -> SafeString:
        return render_state_badge(batch_status(batch) if batch.input_file_id else batch.processing_status)

    @admin.display(description="progress")
    def progress(self, batch: Batch) -> SafeString:
        return render_progress(details_of(batch).status.counts, total=batch.total_items)

    @admin.display(description="waiting for")
    def waiting(self, batch: Batch) -> str:
        reasons = details_of(batch).status.waiting
        return ", ".join(f"{reason} ({count:,})" for reason, count in reasons.items()) or "-"

    @admin.display(description="owner")
    def owner_name(self, batch: Batch) -> str:
        return details_of(batch).names.owner(batch)

    @admin.display(description="policy")
    def policy(self, batch: Batch) -> str:
        return details_of(batch).names.policy(batch)

    @admin.display(description="project")
    def project(self, batch: Batch) -> str:
        return details_of(batch).names.project(batch)

    @admin.display(description="cost")
    def cost(self, batch: Batch) -> str:
        total = details_of(batch).status.usage
        cost = f"{format_amount(total.cost_nanos)} {total.currency}"
        return f"{cost}, {total.unpriced:,} unpriced" if total.unpriced else cost

    @admin.display(description="tokens")
    def tokens(self, batch: Batch) -> str:
        counts = details_of(batch).status.usage.tokens
        return ", ".join(f"{count:,} {meter}" for meter, count in counts.items())

    @admin.display(description="age")
    def age(self, batch: Batch) -> str:
        return timesince(batch.created_at, timezone.now(), depth=1)


def attach_details(batches: list[Batch]) -> list[Batch]:
    """Read the BatchDetails of all of them in a handful of queries, however many there are."""
    names = load_display_names(batches)
    for status in batch_statuses(batches):
        vars(status.batch)["admin_details"] = BatchDetails(status, names)
    return batches


def details_of(batch: Batch) -> BatchDetails:
    """The details of a batch that `attach_details` has read."""
    details: BatchDetails = vars(batch)["admin_details"]
    return details


def _affected_row(batch: Batch) -> AffectedRow:
    return AffectedRow(
        url=reverse("admin:batches_batch_change", args=[batch.pk]),
        name=str(batch.pk),
        summary=format_counts(details_of(batch).status.counts),
    )
