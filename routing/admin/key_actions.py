"""What can be done to a key from its page: the question, and the function of `credentials.relay_keys` that does it."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms

from relaybatch.db.clock import database_now
from routing.credentials.relay_keys import (
    MAX_GRACE_SECONDS,
    IssuedKey,
    disable_key,
    enable_key,
    revoke_key,
    rotate_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from routing.models import RelayKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """`run` raises KeyRefused. `fits`: whether it makes sense for the key as it is."""

    verb: str
    question: str
    warning: str
    done: str
    run: Callable[[RelayKey, Mapping[str, Any]], IssuedKey | None]
    fits: Callable[[RelayKey], bool]


class ActionForm(forms.Form):
    """`seen` is the key as it was when the question was asked: sent again after a rotation, nothing happens."""

    seen = forms.CharField(widget=forms.HiddenInput)
    grace_seconds = forms.IntegerField(
        min_value=0,
        max_value=MAX_GRACE_SECONDS,
        initial=0,
        label="Grace in seconds",
        help_text="For so long the present value works on; 0: it stops at once.",
    )

    def __init__(self, data: Any, *, key: RelayKey, action: Action) -> None:
        super().__init__(data, initial={"seen": key.prefix})
        self._key = key
        if action.verb != "rotate":
            del self.fields["grace_seconds"]

    def clean_seen(self) -> str:
        seen = str(self.cleaned_data["seen"])
        if not hmac.compare_digest(seen.encode(), self._key.prefix.encode()):
            raise forms.ValidationError("The key was rotated meanwhile: open its page again.")
        return seen


def _rotate(key: RelayKey, answers: Mapping[str, Any]) -> IssuedKey:
    return rotate_key(key_id=key.id, grace_seconds=answers["grace_seconds"], now=database_now())


def _revoke(key: RelayKey, _: Mapping[str, Any]) -> None:
    revoke_key(key_id=key.id, now=database_now())


def _disable(key: RelayKey, _: Mapping[str, Any]) -> None:
    disable_key(key_id=key.id)


def _enable(key: RelayKey, _: Mapping[str, Any]) -> None:
    enable_key(key_id=key.id)


ACTIONS = {
    action.verb: action
    for action in (
        Action(
            verb="rotate",
            question="Rotate this key?",
            warning="It gets a new value, shown once. What the present value submitted can be read with that "
            "value only, and only for the grace period.",
            done="Rotated.",
            run=_rotate,
            fits=lambda key: key.revoked_at is None,
        ),
        Action(
            verb="disable",
            question="Disable this key?",
            warning="Its waiting items fail until it is enabled again.",
            done="Disabled.",
            run=_disable,
            fits=lambda key: key.revoked_at is None and key.enabled,
        ),
        Action(
            verb="enable",
            question="Enable this key?",
            warning="It works again at once.",
            done="Enabled.",
            run=_enable,
            fits=lambda key: key.revoked_at is None and not key.enabled,
        ),
        Action(
            verb="revoke",
            question="Revoke this key for good?",
            warning="It can never work again, and its waiting items fail.",
            done="Revoked.",
            run=_revoke,
            fits=lambda key: key.revoked_at is None,
        ),
    )
}
