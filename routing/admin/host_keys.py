"""Host keys. A stored secret goes in and never comes out: no page, no form and no log entry holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

from routing.admin.breakers import BreakersPage
from routing.admin.checked import CheckedForm
from routing.models import HostKey
from routing.secrets import SecretError, encrypt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest

_KEPT = "kept"


class HostKeyForm(CheckedForm):
    """The secret is written with the form, empty keeps the one that is stored. A browser gets an empty field back,
    also when something else in the form was wrong."""

    section = "host_keys"
    words = {"value_from": "env_name", "value": "secret"}

    secret = forms.CharField(
        required=False,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password", "size": 60}),
        help_text="Stored encrypted and never shown again. Left empty, what is stored stays.",
    )

    class Meta:
        model = HostKey
        fields = ("name", "host", "env_name", "rate_limit", "enabled")

    def row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        rate_limit = values["rate_limit"]
        return {
            "host": values["host"].name,
            "value_from": {"env": values["env_name"]} if values["env_name"] else None,
            "value": values["secret"] or (_KEPT if self._keeps_stored(values) else None),
            "rate_limit": rate_limit.name if rate_limit else None,
        }

    def clean(self) -> dict[str, Any] | None:
        values = super().clean()
        if values is None or self.errors:
            return values
        if values["secret"]:
            self._store(values["secret"])
        elif values["env_name"]:
            self.instance.secret_encrypted = None
        return values

    def _keeps_stored(self, values: Mapping[str, Any]) -> bool:
        return not values["env_name"] and self.instance.secret_encrypted is not None

    def _store(self, secret: str) -> None:
        try:
            self.instance.secret_encrypted = encrypt(secret.encode())
        except SecretError as problem:
            self.add_error("secret", str(problem))


@admin.register(HostKey)
class HostKeyPage(BreakersPage):
    form = HostKeyForm
    fields = ("name", "host", "env_name", "secret", "rate_limit", "enabled")
    list_display = ("name", "host", "source", "enabled")
    list_filter = ("enabled", "host")
    list_select_related = ("host",)
    autocomplete_fields = ("host", "rate_limit")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("host")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "source")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return self.fields
        if not self.has_change_permission(request, obj):
            return ("name", "host", "source", "rate_limit", "enabled")
        return ("name", "host", "source", "env_name", "secret", "rate_limit", "enabled")

    @admin.display(description="secret is")
    def source(self, host_key: HostKey) -> str:
        return f"in {host_key.env_name}" if host_key.env_name else "stored, encrypted"
