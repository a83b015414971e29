"""The relay keys' pages. A key's value is in the one response that creates or rotates it, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone

from relaybatch.admin.confirmed_action import Confirmation, confirmation_page
from relaybatch.admin.filters import TextFilter
from relaybatch.admin.model_admin import RelaybatchAdmin
from relaybatch.admin.typed_admin import AnyModelForm
from routing.admin.callers.key_actions import KEY_ACTIONS, KeyAction, KeyActionForm
from routing.credentials.relay_keys import VISIBLE_PREFIX_LENGTH, RelayKeyError, create_key
from routing.models import RelayKey

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from routing.credentials.relay_keys import IssuedKey


class RelayKeyForm(AnyModelForm):
    def clean(self) -> dict[str, Any] | None:
        values = super().clean() or {}
        if self.instance._state.adding and not self.errors:
            self._check_new(values)
        return values

    def _check_new(self, values: dict[str, Any]) -> None:
        if bool(values["service_account"]) == bool(values["user"]):
            raise forms.ValidationError("A key belongs to a service account or to a user: choose one.")
        if values["expires_at"] is not None and values["expires_at"] <= timezone.now():
            self.add_error("expires_at", "Expected a time in the future.")


class PrefixFilter(TextFilter):
    title = "beginning of the key"
    parameter_name = "prefix"
    hint = "sk-rb-…"

    def filter_rows(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        """A pasted whole value is shortened to its prefix first."""
        return rows.filter(prefix__startswith=value.rstrip("…")[:VISIBLE_PREFIX_LENGTH])


@admin.register(RelayKey)
class RelayKeyAdmin(RelaybatchAdmin):
    form = RelayKeyForm
    change_form_template = "admin/routing/relaykey/change_form.html"
    list_display = ("display_prefix", "principal", "own_policy", "state", "created_at", "expires_at")
    list_filter = ("enabled", PrefixFilter)
    list_select_related = ("service_account", "user", "policy")
    search_fields = ("service_account__name", "user__username", "prefix")
    autocomplete_fields = ("service_account", "user", "policy")
    ordering = ("-created_at", "-id")
    sortable_by = ()
    actions = None

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ("service_account", "user", "policy", "expires_at")
        return ("display_prefix", "principal", "policy", "state", "created_at", "expires_at", "grace_until")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else tuple(f for f in self.get_fields(request, obj) if f != "policy")

    def get_urls(self) -> list[Any]:
        act = path(
            "<uuid:key_id>/do/<str:name>/", self.admin_site.admin_view(self.act), name="routing_relaykey_act"
        )
        return [act, *super().get_urls()]

    @admin.display(description="key")
    def display_prefix(self, key: RelayKey) -> str:
        return f"{key.prefix}…"

    @admin.display(description="belongs to")
    def principal(self, key: RelayKey) -> str:
        if key.service_account is not None:
            return f"service account {key.service_account.name}"
        return f"user {key.user.get_username()}" if key.user else ""

    @admin.display(description="policy")
    def own_policy(self, key: RelayKey) -> str:
        return key.policy.name if key.policy else "its principal's"

    @admin.display(description="state")
    def state(self, key: RelayKey) -> str:
        return describe_state(key)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """Create a new key by `create_key`, and keep its value on the request for `response_add`."""
        if change:
            super().save_model(request, obj, form, change)
            return
        issued = create_key(
            principal=obj.service_account or obj.user, policy=obj.policy, expires_at=obj.expires_at
        )
        obj.pk = issued.id
        obj.refresh_from_db()
        vars(request)["issued_key"] = issued

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._value_page(request, obj, vars(request).pop("issued_key"))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        key = self.get_object(request, object_id)
        available = []
        if key is not None and self.has_change_permission(request, key):
            available = [action for action in KEY_ACTIONS.values() if action.is_available(key)]
        context = {"key_actions": available, **(extra_context or {})}
        return super().change_view(request, object_id, form_url, context)

    def act(self, request: HttpRequest, key_id: Any, name: str) -> HttpResponse:
        """Show the confirmation page on GET; run the action on POST."""
        key = self.get_object(request, str(key_id))
        if not self.has_change_permission(request, key):
            raise PermissionDenied
        action = KEY_ACTIONS.get(name)
        if key is None or action is None:
            raise Http404
        form = KeyActionForm(request.POST or None, key=key, action=action)
        if request.method == "POST" and form.is_valid():
            try:
                issued = action.run(key, form.cleaned_data)
            except RelayKeyError as error:
                form.add_error(None, str(error))
            else:
                return self._after_action(request, key, action, issued)
        return self._confirm(request, action, key, form)

    def _confirm(
        self, request: HttpRequest, action: KeyAction, key: RelayKey, form: KeyActionForm
    ) -> HttpResponse:
        url = reverse("admin:routing_relaykey_change", args=[key.pk])
        confirmation = Confirmation(
            title=action.question, cancel_url=url, breadcrumb=(url, str(key)), form=form
        )
        return confirmation_page(request, action, confirmation, context=self._context(request, key))

    def _after_action(
        self, request: HttpRequest, key: RelayKey, action: KeyAction, issued: IssuedKey | None
    ) -> HttpResponse:
        self.log_change(request, key, action.log_message)
        if issued is not None:
            key.refresh_from_db()
            return self._value_page(request, key, issued)
        messages.success(request, f"The key {key} is {action.log_message.lower()}")
        return HttpResponseRedirect(reverse("admin:routing_relaykey_change", args=[key.pk]))

    def _value_page(self, request: HttpRequest, key: RelayKey, issued: IssuedKey) -> HttpResponse:
        # No redirect: the value would have to be stored somewhere to reach the next page.
        context = self._context(request, key) | {"value": issued.value, "title": "Copy the key now"}
        return TemplateResponse(request, "admin/routing/relaykey/value.html", context)

    def _context(self, request: HttpRequest, key: RelayKey) -> dict[str, Any]:
        return {**self.admin_site.each_context(request), "opts": self.opts, "key": key, "original": key}


def describe_state(key: RelayKey) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at:%Y-%m-%d %H:%M} UTC"
    if not key.enabled:
        return "disabled"
    return "expired" if key.expires_at and key.expires_at <= timezone.now() else "works"
