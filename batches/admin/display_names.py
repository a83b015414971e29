"""Names for what rows hold as ids: read for a whole page at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from batches.models import Owner
from routing.models import Policy, Project, RelayKey, User

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from batches.models import Batch

HASH_PREFIX_LENGTH = 8
_USER_PREFIX = "user:"


@dataclass(frozen=True, slots=True)
class DisplayNames:
    """What is gone has a label too: a part of its id."""

    owners: Mapping[str, str]
    policies: Mapping[uuid.UUID, str]
    projects: Mapping[uuid.UUID, str]

    def owner(self, batch: Batch) -> str:
        return self.owners.get(batch.owner.name) or _unknown_owner(batch.owner.name)

    def policy(self, batch: Batch) -> str:
        return self.policies.get(batch.policy_id) or f"deleted ({str(batch.policy_id)[:13]}…)"

    def project(self, batch: Batch) -> str:
        if batch.project_id is None:
            return "-"
        return self.projects.get(batch.project_id) or f"deleted ({str(batch.project_id)[:13]}…)"


def load_display_names(batches: Sequence[Batch]) -> DisplayNames:
    """Four queries at most, however many batches; their owners must have been read with them."""
    return DisplayNames(
        owners=owner_display_names({batch.owner.name for batch in batches}),
        policies=_names(Policy, {batch.policy_id for batch in batches}),
        projects=_names(Project, {batch.project_id for batch in batches if batch.project_id}),
    )


def owner_display_names(owners: Collection[str]) -> dict[str, str]:
    """`{owner: the key's beginning and whose it is, or the user's name}` for the owners that are still known."""
    users = {name: name.removeprefix(_USER_PREFIX) for name in owners if name.startswith(_USER_PREFIX)}
    ids = [number for number in users.values() if number.isdecimal()]
    named = {str(user.pk): user.get_username() for user in User.objects.filter(pk__in=ids)} if ids else {}
    labels = {name: f"user {named[number]}" for name, number in users.items() if number in named}
    return labels | _key_display_names([name for name in owners if name not in users])


def find_owner_ids(term: str) -> list[int]:
    """Rows of owners by a key's beginning (as shown), a user's or a service account's exact name."""
    keys = RelayKey.objects.filter(
        Q(prefix=term.rstrip("…")) | Q(service_account__name=term) | Q(user__username=term)
    )
    names = {name for hashes in keys.values_list("key_hash", "previous_key_hash") for name in hashes if name}
    names |= {f"{_USER_PREFIX}{pk}" for pk in User.objects.filter(username=term).values_list("pk", flat=True)}
    return list(Owner.objects.filter(name__in=names).values_list("id", flat=True))


def _key_display_names(hashes: Iterable[str]) -> dict[str, str]:
    wanted = set(hashes)
    if not wanted:
        return {}
    keys = RelayKey.objects.filter(Q(key_hash__in=wanted) | Q(previous_key_hash__in=wanted))
    labels = {}
    for key in keys.select_related("service_account", "user"):
        if key.previous_key_hash in wanted:
            labels[key.previous_key_hash] = f"{_principal(key)}, before a rotation"
        labels[key.key_hash] = f"{key.prefix}… {_principal(key)}"
    return labels


def _principal(key: RelayKey) -> str:
    if key.service_account is not None:
        return key.service_account.name
    return f"user {key.user.get_username()}" if key.user else ""


def _names(model: Any, ids: Collection[uuid.UUID]) -> dict[uuid.UUID, str]:
    return dict(model.objects.filter(pk__in=ids).values_list("pk", "name")) if ids else {}


def _unknown_owner(name: str) -> str:
    if name.startswith(_USER_PREFIX):
        return f"{name}, deleted"
    return f"key {name[:HASH_PREFIX_LENGTH]}…, deleted or rotated"
