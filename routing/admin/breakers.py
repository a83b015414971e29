"""The page of the host keys' breakers: state, last failure and until when; each can be reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from routing.admin.named_rows import NamedRowAdmin
from routing.gate.breakers import breaker_states, reset_breaker
from routing.gate.redis import RedisUnavailable
from routing.models import HostKey
from routing.secrets.encryption import SecretError

if TYPE_CHECKING:
    from django.http import HttpRequest

ROWS_PER_PAGE = 100


class BreakersAdmin(NamedRowAdmin):
    """Adds the breakers page to the host keys' pages, with the same view permission."""

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.breakers)
        return [path("breakers/", view, name="routing_hostkey_breakers"), *super().get_urls()]

    def breakers(self, request: HttpRequest) -> HttpResponse:
        """List the breakers. A POST with a host key's id resets its breaker."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._reset(request)
        host_keys = HostKey.objects.select_related("host").order_by("host__name", "name", "id")
        page = Paginator(host_keys, ROWS_PER_PAGE).get_page(request.GET.get("page"))
        context = {
            **self.admin_site.each_context(request),
            "title": "Breakers of host keys",
            "opts": self.opts,
            "page": page,
            "may_reset": self.has_change_permission(request),
            "states": self._states(request, list(page.object_list)),
        }
        return TemplateResponse(request, "admin/routing/hostkey/breakers.html", context)

    def _states(self, request: HttpRequest, host_keys: list[HostKey]) -> list[Any]:
        try:
            return list(breaker_states(host_keys))
        except RedisUnavailable:
            messages.error(request, "Redis is unavailable, and breakers are stored nowhere else.")
            return []

    def _reset(self, request: HttpRequest) -> HttpResponse:
        host_key = self.get_object(request, request.POST.get("host_key", ""))
        if host_key is None:
            raise Http404
        if not self.has_change_permission(request, host_key):
            raise PermissionDenied
        try:
            reset_breaker(host_key)
        except (RedisUnavailable, SecretError):
            messages.error(request, f"The breaker of {host_key} could not be reset.")
        else:
            self.log_change(request, host_key, "Reset the breaker.")
            messages.success(request, f"The breaker of {host_key} is closed.")
        return HttpResponseRedirect(reverse("admin:routing_hostkey_breakers"))
