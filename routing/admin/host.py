"""The hosts' pages, with their headers. A header's secret can be written, and is never shown again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

from relaybatch.admin.typed_admin import AnyModelForm
from routing.admin.catalog_forms import CatalogForm, CatalogFormSet
from routing.admin.named_rows import NamedRowAdmin, RowsInline
from routing.admin.secret_fields import (
    SOURCE_HELP_TEXTS,
    UNCHANGED,
    SecretField,
    describe_source,
    secret_source,
    store_secret,
)
from routing.catalog.fields.validators import base_url
from routing.hosts.headers import AUTH_SCHEMES, is_credential_header
from routing.models import Host, HostHeader
from routing.secrets.encryption import SecretError

if TYPE_CHECKING:
    from collections.abc import Mapping


class QueryField(forms.CharField):
    """A query string's parameters, one `name=value` a line."""

    widget = forms.Textarea(attrs={"rows": 3, "cols": 80})

    def __init__(self) -> None:
        super().__init__(
            required=False,
            help_text="One a line: api-version=2024-10-21. Sent as the query string of every call. Not for secrets.",
        )

    def prepare_value(self, value: Any) -> Any:
        return (
            "\n".join(f"{name}={text}" for name, text in value.items()) if isinstance(value, dict) else value
        )

    def to_python(self, value: Any) -> Any:
        lines = [line.strip() for line in str(super().to_python(value) or "").splitlines() if line.strip()]
        pairs = [(name.strip(), text.strip()) for name, _, text in (line.partition("=") for line in lines)]
        if len(dict(pairs)) < len(pairs):
            raise forms.ValidationError("a name is given twice")
        return dict(pairs)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool((initial or {}) != self.to_python(data))
        except forms.ValidationError:
            return True


def _auth_to_catalog(auth: str) -> Any:
    """`auth` as the catalog file would have it."""
    return {"header": auth} if auth and auth not in AUTH_SCHEMES else auth or None


class HostForm(CatalogForm):
    section = "hosts"

    query = QueryField()
    auth = forms.CharField(
        max_length=200,
        required=False,
        help_text=f"How a host key is sent: {', '.join(AUTH_SCHEMES)}, or the name of another header. "
        "Left empty, as the adapter of the binding does.",
    )

    class Meta:
        model = Host
        fields = ("name", "base_url", "query", "auth", "stream_usage", "enabled")
        widgets = {"base_url": forms.TextInput(attrs={"size": 100})}
        help_texts = {"stream_usage": "Off for servers that refuse stream_options."}

    def to_catalog(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "base_url": values["base_url"],
            "query": values["query"],
            "auth": _auth_to_catalog(values["auth"]),
            "stream_usage": values["stream_usage"],
        }

    def clean(self) -> dict[str, Any] | None:
        values = super().clean()
        if values is not None and not self.errors:
            values["base_url"] = base_url(values["base_url"])
        return values


class HostHeaderForm(AnyModelForm):
    """An empty `secret` keeps the stored one."""

    text = forms.CharField(required=False, help_text="Visible to everybody who may view hosts.")
    secret = SecretField()

    class Meta:
        model = HostHeader
        fields = ("name", "text", "env_name", "file_path")
        widgets = {name: forms.TextInput(attrs={"size": 18}) for name in ("name", "env_name", "file_path")}
        help_texts = SOURCE_HELP_TEXTS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        is_stored = self.instance.secret_encrypted is not None
        attributes = {"size": 18, "placeholder": "stored, encrypted" if is_stored else ""}
        self.fields["secret"].widget.attrs.update(attributes)

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if values.get("text") and is_credential_header(values.get("name", "key")):
            self._hide_text(values)
        given = [name for name in ("text", "secret", "env_name", "file_path") if values.get(name)]
        if len(given) > 1:
            self.add_error(None, "expected text, a variable, a file or a secret, one of them")
        values["keep_stored"] = self.instance.secret_encrypted is not None and not given
        return values

    def _hide_text(self, values: dict[str, Any]) -> None:
        """Move the text to `secret`, since the header's name is a credential's; the page must not show it again."""
        values["secret"] = values["secret"] or values["text"]
        values["text"] = ""
        self.data = {**self.data, self.add_prefix("text"): ""}

    def to_catalog(self) -> Any:
        """The header's value as the catalog file would have it."""
        values = self.cleaned_data
        value = UNCHANGED if values["keep_stored"] else values["secret"] or None
        return values["text"] or {"value": value, "value_from": secret_source(values)}

    def store_secret(self) -> None:
        values = self.cleaned_data
        try:
            store_secret(self.instance, values["secret"], keep_stored=values["keep_stored"])
        except SecretError as error:
            self.add_error("secret", str(error))


class HostHeaderFormSet(CatalogFormSet):
    section, list_field = "hosts", "headers"

    def clean(self) -> None:
        if any(self.errors) or self._has_duplicate_names():
            return
        super().clean()
        for form in self.remaining_forms():
            if not form.errors:
                form.store_secret()

    def _has_duplicate_names(self) -> bool:
        """Report a name that is given twice, in whatever case: a mapping cannot hold both, nor can a request."""
        seen: set[str] = set()
        for form in self.remaining_forms():
            name = form.cleaned_data["name"].lower()
            if name in seen:
                form.add_error("name", "given twice")
                return True
            seen.add(name)
        return False

    def row_to_catalog(self) -> dict[str, Any]:
        auth = _auth_to_catalog(self.instance.auth)
        return {**super().row_to_catalog(), "base_url": self.instance.base_url, "auth": auth}

    def list_to_catalog(self, forms: list[Any]) -> Any:
        return {form.cleaned_data["name"]: form.to_catalog() for form in forms}


class HostHeaderInline(RowsInline):
    model = HostHeader
    form = HostHeaderForm
    formset = HostHeaderFormSet
    verbose_name = "header"
    fields = ("name", "text", "env_name", "file_path", "secret")

    def secret(self, header: HostHeader) -> str:
        """For users who may only view; others get the form's field."""
        return describe_source(header)


@admin.register(Host)
class HostAdmin(NamedRowAdmin):
    form = HostForm
    fields = ("name", "base_url", "query", "auth", "stream_usage", "enabled")
    list_display = ("name", "base_url", "auth", "enabled")
    inlines = (HostHeaderInline,)
