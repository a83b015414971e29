"""What operators can do to a relay key after a confirmation: rotate, disable, enable and revoke it."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms

from relaybatch.admin.confirmed_action import ConfirmedAction
from relaybatch.db.clock import database_now
from routing.credentials.relay_keys import (
    MAX_GRACE_SECONDS,
    IssuedKey,
    disable_key,
    enable_key,
    revoke_key,
    rotate_key,
)
from routing.models import RelayKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAction(ConfirmedAction[RelayKey, IssuedKey | None]):
    """`run` raises RelayKeyError; it returns the new value when there is one.

    `is_available`: whether the key, as it is now, allows the action.
    """

    is_available: Callable[[RelayKey], bool]


class KeyActionForm(forms.Form):
    """`seen` is the key's prefix when the form was shown: a form that is sent again after a rotation does nothing."""

    seen = forms.CharField(widget=forms.HiddenInput)
    grace_seconds = forms.IntegerField(
        min_value=0,
        max_value=MAX_GRACE_SECONDS,
        initial=0,
        label="Grace in seconds",
        help_text="How long the present value still works; 0: it stops at once.",
    )

    def __init__(self, data: Any, *, key: RelayKey, action: KeyAction) -> None:
        super().__init__(data, initial={"seen": key.prefix})
        self._key = key
        if action.name != "rotate":
            del self.fields["grace_seconds"]

    def clean_seen(self) -> str:
        seen = str(self.cleaned_data["seen"])
        if not hmac.compare_digest(seen.encode(), self._key.prefix.encode()):
            raise forms.ValidationError("The key was rotated meanwhile: open its page again.")
        return seen


def _rotate(key: RelayKey, values: Mapping[str, Any]) -> IssuedKey:
    return rotate_key(key_id=key.id, grace_seconds=values["grace_seconds"], now=database_now())


def _revoke(key: RelayKey, _: Mapping[str, Any]) -> None:
    revoke_key(key_id=key.id, now=database_now())


def _disable(key: RelayKey, _: Mapping[str, Any]) -> None:
    disable_key(key_id=key.id)


def _enable(key: RelayKey, _: Mapping[str, Any]) -> None:
    enable_key(key_id=key.id)


KEY_ACTIONS = {
    action.name: action
    for action in (
        KeyAction(
            name="rotate",
            question="Rotate this key?",
            explanation="It gets a new value, shown once. What the present value submitted can be read with that "
            "value only, and only for the grace period.",
            log_message="Rotated.",
            run=_rotate,
            is_available=lambda key: key.revoked_at is None,
        ),
        KeyAction(
            name="disable",
            question="Disable this key?",
            explanation="Its waiting items fail until it is enabled again.",
            log_message="Disabled.",
            run=_disable,
            is_available=lambda key: key.revoked_at is None and key.enabled,
        ),
        KeyAction(
            name="enable",
            question="Enable this key?",
            explanation="It works again at once.",
            log_message="Enabled.",
            run=_enable,
            is_available=lambda key: key.revoked_at is None and not key.enabled,
        ),
        KeyAction(
            name="revoke",
            question="Revoke this key for good?",
            explanation="It can never work again, and its waiting items fail.",
            log_message="Revoked.",
            run=_revoke,
            is_available=lambda key: key.revoked_at is None,
        ),
    )
}
