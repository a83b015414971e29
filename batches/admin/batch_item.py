"""The items' pages. Payloads are on a page of their own: it needs a permission, and each access is logged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html

from batches.admin.filters import ItemStateFilter
from batches.admin.payload_excerpts import PARTS, read_whole_part
from batches.admin.payload_excerpts import build_excerpts as excerpts_of
from batches.admin.progress import render_state_badge
from batches.models import BatchItem
from batches.models.public_ids import parse_batch_id
from batches.payloads import PayloadReadError, PayloadStoreUnavailable
from relaybatch.admin.large_lists import LargeListAdmin

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

audit = logging.getLogger("audit")

_COLUMNS = (
    *("id", "batch_link", "idx", "custom_id", "state_badge", "attempt", "excused", "claim_no", "worker_id"),
    *("error_code", "error", "upstream_status", "upstream_request_id"),
    *("waiting_reason", "not_before", "published_at", "started_at", "finished_at"),
    *("request_length", "response_length"),
)


@admin.register(BatchItem)
class BatchItemAdmin(LargeListAdmin):
    change_form_template = "admin/batches/batchitem/change_form.html"
    list_display = (
        *("item", "batch_link", "custom_id", "state_badge", "attempt", "excused"),
        *("error_code", "finished_at"),
    )
    list_display_links = ("item",)
    list_filter = (ItemStateFilter,)
    search_fields = ("id",)
    search_help_text = "An item's id, or a batch's"
    ordering = ("-id",)
    fields = _COLUMNS
    readonly_fields = _COLUMNS

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Without the upstream's error, which only the payload page reads."""
        return super().get_queryset(request).defer("upstream_error")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        found = parse_batch_id(term)
        if found is None:
            return queryset.none(), False
        # Two lookups, since an OR over both columns would read the whole table.
        if queryset.filter(id=found).exists():
            return queryset.filter(id=found), False
        return queryset.filter(batch_id=found).order_by("-idx"), False

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view
        return [
            path("<uuid:item_id>/payloads/", view(self.payloads), name="batches_batchitem_payloads"),
            path(
                "<uuid:item_id>/payloads/<str:part>/",
                view(self.download),
                name="batches_batchitem_download",
            ),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        more = {"may_view_payloads": request.user.has_perm("batches.view_payload")}
        return super().change_view(request, object_id, form_url, more | (extra_context or {}))

    def payloads(self, request: HttpRequest, item_id: Any) -> HttpResponse:
        """Show the first 64 KiB of request, response and upstream error."""
        item = self._open_item(request, item_id, event="item payloads opened")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Request and response",
            "subtitle": str(item),
            "item": item,
            "excerpts": excerpts_of(item),
        }
        return TemplateResponse(request, "admin/batches/batchitem/payloads.html", context)

    def download(self, request: HttpRequest, item_id: Any, part: str) -> HttpResponse:
        """Send a whole payload as an attachment, so that no browser renders it as a page."""
        if part not in PARTS:
            raise Http404
        item = self._open_item(request, item_id, event=f"item {part} downloaded")
        try:
            body = read_whole_part(item, part)
        except (PayloadReadError, PayloadStoreUnavailable):
            raise Http404 from None
        if body is None:
            raise Http404
        name = f"{item.batch_id}-{item.idx}-{part}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return HttpResponse(body, content_type="application/json", headers=headers)

    def _open_item(self, request: HttpRequest, item_id: Any, *, event: str) -> BatchItem:
        """Check the permission to read payloads, log the access and return the item, in this order."""
        if not (self.has_view_permission(request) and request.user.has_perm("batches.view_payload")):
            raise PermissionDenied
        item: BatchItem | None = self.get_object(request, str(item_id))
        if item is None:
            raise Http404
        user = request.user.get_username()
        audit.info(event, extra={"user": user, "batch_id": item.batch_id, "item_id": item.id})
        return item

    @admin.display(description="item")
    def item(self, item: BatchItem) -> str:
        return f"#{item.idx}"

    @admin.display(description="batch")
    def batch_link(self, item: BatchItem) -> SafeString:
        url = reverse("admin:batches_batch_change", args=[item.batch_id])
        return format_html('<a href="{}">{}</a>', url, item.batch_id)

    @admin.display(description="state")
    def state_badge(self, item: BatchItem) -> SafeString:
        return render_state_badge(item.state)
