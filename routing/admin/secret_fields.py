"""Form fields of host keys and headers whose secret is in a variable, in a file or encrypted in the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from routing.secrets.encryption import encrypt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.models import HostHeader, HostKey

UNCHANGED = "kept"
"""Stands for a stored secret while a form is validated, so that nothing decrypts the real one."""

SOURCE_HELP_TEXTS = {
    "env_name": "A variable of the workers.",
    "file_path": "The absolute path of a file of the workers that holds one line.",
}


class SecretField(forms.CharField):
    """A password field that is always rendered empty, also when the form is shown again with errors."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            widget=forms.PasswordInput(
                render_value=False, attrs={"autocomplete": "new-password", "size": 60}
            ),
            help_text="Stored encrypted and never shown again. Left empty, what is stored stays.",
        )


def secret_source(values: Mapping[str, Any]) -> dict[str, str] | None:
    """`value_from` as the catalog file would have it."""
    sources = {"env": values["env_name"], "file": values["file_path"]}
    return {name: text for name, text in sources.items() if text} or None


def store_secret(row: HostKey | HostHeader, secret: str, *, keep_stored: bool) -> None:
    """Encrypt a new secret into the row, or clear the stored one unless `keep_stored`. Raises SecretError."""
    if secret:
        row.secret_encrypted = encrypt(secret.encode())
    elif not keep_stored:
        row.secret_encrypted = None


def describe_source(row: HostKey | HostHeader) -> str:
    """Where the secret is; empty when there is none."""
    if row.env_name:
        return f"in {row.env_name}"
    if row.file_path:
        return f"in the file {row.file_path}"
    return "" if row.secret_encrypted is None else "stored, encrypted"
