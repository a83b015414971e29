"""The mistake of sending Relay's bare bodies without their `shape`, which looks like a bad batch of another dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw

from relaybatch.http.body.json_member import Member, is_present
from relaybatch.http.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence


class _ItemProbe(msgspec.Struct):
    custom_id: Member = UNSET
    params: Member = UNSET


_item_decoder = msgspec.json.Decoder(_ItemProbe)


def reject_bare_bodies(requests: Sequence[Raw]) -> None:
    """Raise InvalidRequest that asks for `shape`, unless any of the requests has `custom_id` or `params`."""
    if _are_bare_bodies(requests):
        raise InvalidRequest(
            "`requests` holds bare bodies, which need a `shape`: `shape` is missing "
            "(openai, openai_responses or anthropic).",
            code="missing_field",
            param="shape",
        )


def _are_bare_bodies(requests: Sequence[Raw]) -> bool:
    has_objects = False
    for request in requests:
        try:
            item = _item_decoder.decode(request)
        except msgspec.ValidationError:
            continue
        has_objects = True
        if is_present(item.params) or is_present(item.custom_id):
            return False
    return has_objects
