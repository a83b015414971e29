"""The host keys' pages. A secret can be written, and no page, form or log entry shows it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from routing.admin.breakers import BreakersAdmin
from routing.admin.catalog_forms import CatalogForm
from routing.admin.secret_fields import (
    SOURCE_HELP_TEXTS,
    UNCHANGED,
    SecretField,
    describe_source,
    secret_source,
    store_secret,
)
from routing.models import HostKey
from routing.secrets.encryption import SecretError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest


class HostKeyForm(CatalogForm):
    """An empty `secret` keeps the stored one."""

    section = "host_keys"
    form_field_names = {"value_from": "env_name", "value": "secret"}

    secret = SecretField()

    class Meta:
        model = HostKey
        fields = ("name", "host", "env_name", "file_path", "rate_limit", "enabled")
        help_texts = SOURCE_HELP_TEXTS

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        rate_limit = values["rate_limit"]
        return {
            "host": values["host"].name,
            "value_from": secret_source(values),
            "value": values["secret"] or (UNCHANGED if self._keeps_stored(values) else None),
            "rate_limit": rate_limit.name if rate_limit else None,
        }

    def clean(self) -> dict[str, Any] | None:
        values = super().clean()
        if values is None or self.errors:
            return values
        try:
            store_secret(self.instance, values["secret"], keep_stored=self._keeps_stored(values))
        except SecretError as error:
            self.add_error("secret", str(error))
        return values

    def _keeps_stored(self, values: Mapping[str, Any]) -> bool:
        return secret_source(values) is None and self.instance.secret_encrypted is not None


@admin.register(HostKey)
class HostKeyAdmin(BreakersAdmin):
    form = HostKeyForm
    fields = ("name", "host", "env_name", "file_path", "secret", "rate_limit", "enabled")
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
        return ("name", "host", "source", "env_name", "file_path", "secret", "rate_limit", "enabled")

    @admin.display(description="secret is")
    def source(self, host_key: HostKey) -> str:
        return describe_source(host_key) or "nowhere: none is sent"
