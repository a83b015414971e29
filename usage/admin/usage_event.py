"""The pages of usage events: what each attempt used and cost, and the totals of the filtered events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.template.response import TemplateResponse
from django.urls import path, reverse

from relaybatch.admin.cells import two_lines
from relaybatch.admin.large_lists import FilterOnlyChangeList, LargeChangeList, LargeListAdmin
from routing.money import format_amount
from usage.admin.filters import FILTERS, selected_window
from usage.admin.report import build_report
from usage.models import UsageEvent

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList
    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString

_COLUMNS = (
    *("id", "at", "source", "late", "public_batch_id", "item_idx", "custom_id", "attempt"),
    *("status", "error_kind", "duration_ms", "upstream_ms", "keys_tried"),
    *("requested_model", "model", "provider", "host", "host_key", "adapter"),
    *("policy", "project", "team", "principal_kind", "principal_id", "credential_kind", "credential_id"),
    *("input", "cache_read", "cache_write", "output", "reasoning", "cache_write_5m", "cache_write_1h"),
    *("cost", "upstream_cost", "cost_breakdown", "pricing"),
)


@admin.register(UsageEvent)
class UsageEventAdmin(LargeListAdmin):
    change_list_template = "admin/usage/usageevent/change_list.html"
    list_display = (
        *("time", "called_model", "status", "error_kind", "tokens", "cost", "duration", "project"),
        "batch_and_item",
    )
    list_display_links = ("time",)
    list_filter = FILTERS
    ordering = ("-at", "-id")
    fields = _COLUMNS
    readonly_fields = _COLUMNS

    def get_urls(self) -> list[Any]:
        totals = path("totals/", self.admin_site.admin_view(self.totals), name="usage_usageevent_totals")
        return [totals, *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[ChangeList]:
        url_name = request.resolver_match.url_name if request.resolver_match else ""
        return FilterOnlyChangeList if url_name == "usage_usageevent_totals" else LargeChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        totals = f"{reverse('admin:usage_usageevent_totals')}?{request.GET.urlencode()}"
        return super().changelist_view(request, {"totals": totals, **(extra_context or {})})

    def totals(self, request: HttpRequest) -> HttpResponse:
        """Show the totals of the events that the same query string selects.

        This is a request of its own, since summing a million events takes longer than listing a page of them.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            events = self.get_changelist_instance(request).queryset
        except IncorrectLookupParameters:
            raise Http404 from None
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Totals",
            "report": build_report(events, selected_window(request)),
            "is_fragment": request.headers.get("X-Requested-With") == "fetch",
        }
        return TemplateResponse(request, "admin/usage/usageevent/totals.html", context)

    def is_unfiltered(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description="at (UTC)")
    def time(self, event: UsageEvent) -> str:
        return f"{event.at:%Y-%m-%d %H:%M:%S}"

    @admin.display(description="model")
    def called_model(self, event: UsageEvent) -> str:
        return event.model or event.requested_model

    @admin.display(description="tokens in / out")
    def tokens(self, event: UsageEvent) -> str:
        if event.input is None:
            return "-"
        prompt = event.input + (event.cache_read or 0) + (event.cache_write or 0)
        return f"{prompt:,} / {event.output or 0:,}"

    @admin.display(description="cost")
    def cost(self, event: UsageEvent) -> str:
        return (
            "unpriced" if event.cost_nanos is None else f"{format_amount(event.cost_nanos)} {event.currency}"
        )

    @admin.display(description="cost, as the upstream says")
    def upstream_cost(self, event: UsageEvent) -> str:
        nanos = event.upstream_cost_nanos
        return "-" if nanos is None else f"{format_amount(nanos)} USD"

    @admin.display(description="ms")
    def duration(self, event: UsageEvent) -> str:
        return f"{event.duration_ms:,}"

    @admin.display(description="batch, item and attempt")
    def batch_and_item(self, event: UsageEvent) -> SafeString:
        item = "" if event.item_idx is None else f"item {event.item_idx}, "
        late = ", late" if event.late else ""
        return two_lines(event.public_batch_id, f"{item}attempt {event.attempt}{late}")
