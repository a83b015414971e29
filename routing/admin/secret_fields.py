"""Fields of secrets that stand in a variable, in a file or encrypted in a row, for host keys and headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from routing.secrets.encryption import encrypt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routing.models import HostHeader, HostKey

UNCHANGED = "kept"
"""What stands for a stored secret where a form is checked: nobody reads the real one."""

SOURCE_HELP_TEXTS = {
    "env_name": "A variable of the workers.",
    "file_path": "The absolute path of a file of the workers that holds one line.",
}


class SecretField(forms.CharField):
    """A browser gets an empty field back, also when something else in the form was wrong."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            widget=forms.PasswordInput(
                render_value=False, attrs={"autocomplete": "new-password", "size": 60}
            ),
            help_text="Stored encrypted and never shown again. Left empty, what is stored stays.",
        )


def secret_source(values: Mapping[str, Any]) -> dict[str, str] | None:
    """`value_from` as the file would say it."""
    said = {"env": values["env_name"], "file": values["file_path"]}
    return {word: text for word, text in said.items() if text} or None


def store_secret(row: HostKey | HostHeader, secret: str, *, kept: bool) -> None:
    """A new secret takes the place of the stored one, and so does anything else; raises SecretError."""
    if secret:
        row.secret_encrypted = encrypt(secret.encode())
    elif not kept:
        row.secret_encrypted = None


def describe_source(row: HostKey | HostHeader) -> str:
    if row.env_name:
        return f"in {row.env_name}"
    if row.file_path:
        return f"in the file {row.file_path}"
    return "" if row.secret_encrypted is None else "stored, encrypted"
