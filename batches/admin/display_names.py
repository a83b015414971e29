"""The names that the pages show instead of ids, read for all rows of a page at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from batches.models import Owner
from routing.models import Policy, Project, RelayKey, User

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from batches.models import Batch

HASH_PREFIX_LENGTH = 8
_USER_PREFIX = "user:"


@dataclass(frozen=True, slots=True)
class DisplayNames:
    """Display names by id. A row that was deleted is shown by a part of its id."""

    owners: Mapping[str, str]
    policies: Mapping[uuid.UUID, str]
    projects: Mapping[uuid.UUID, str]

    def owner(self, batch: Batch) -> str:
        return owner_display_name(batch.owner.name, self.owners)

    def policy(self, batch: Batch) -> str:
        return self.policies.get(batch.policy_id) or f"deleted ({str(batch.policy_id)[:13]}…)"

    def project(self, batch: Batch) -> str:
        if batch.project_id is None:
            return "-"
        return self.projects.get(batch.project_id) or f"deleted ({str(batch.project_id)[:13]}…)"


def load_display_names(batches: Sequence[Batch]) -> DisplayNames:
    """At most four queries, however many batches. Their `owner` must be loaded already."""
    return DisplayNames(
        owners=owner_display_names({batch.owner.name for batch in batches}),
        policies=_names(Policy, {batch.policy_id for batch in batches}),
        projects=_names(Project, {batch.project_id for batch in batches if batch.project_id}),
    )


def owner_display_names(owners: Collection[str]) -> dict[str, str]:
    """`{owner: the key's prefix and its principal, or the user's name}`, without owners that no longer exist."""
    users = {name: name.removeprefix(_USER_PREFIX) for name in owners if name.startswith(_USER_PREFIX)}
    ids = [user_id for user_id in users.values() if user_id.isdecimal()]
    usernames = {str(user.pk): user.get_username() for user in User.objects.filter(pk__in=ids)} if ids else {}
    names = {name: f"user {usernames[user_id]}" for name, user_id in users.items() if user_id in usernames}
    return names | _key_display_names([name for name in owners if name not in users])


def owner_display_name(owner: str, names: Mapping[str, str]) -> str:
    """`names`: those of `owner_display_names`."""
    return names.get(owner) or _unknown_owner(owner)


def filter_by_id_or_owner(
    rows: QuerySet[Any], search_term: str, *, parse_id: Callable[[str], uuid.UUID | None]
) -> QuerySet[Any]:
    """Return the rows that a search of batches or files finds: all, if nothing is searched for."""
    term = search_term.strip()
    if not term:
        return rows
    row_id = parse_id(term)
    return rows.filter(id=row_id) if row_id else rows.filter(owner_id__in=find_owner_ids(term))


def find_owner_ids(term: str) -> list[int]:
    """Ids of owners, found by a key's prefix (as displayed) or the exact name of a user or service account."""
    keys = RelayKey.objects.filter(
        Q(prefix=term.rstrip("…")) | Q(service_account__name=term) | Q(user__username=term)
    )
    names = {name for hashes in keys.values_list("key_hash", "previous_key_hash") for name in hashes if name}
    names |= {f"{_USER_PREFIX}{pk}" for pk in User.objects.filter(username=term).values_list("pk", flat=True)}
    return list(Owner.objects.filter(name__in=names).values_list("id", flat=True))


def _key_display_names(hashes: Iterable[str]) -> dict[str, str]:
    requested = set(hashes)
    if not requested:
        return {}
    keys = RelayKey.objects.filter(Q(key_hash__in=requested) | Q(previous_key_hash__in=requested))
    names = {}
    for key in keys.select_related("service_account", "user"):
        if key.previous_key_hash in requested:
            names[key.previous_key_hash] = f"{_principal(key)}, before a rotation"
        names[key.key_hash] = f"{key.prefix}… {_principal(key)}"
    return names


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
