"""The credential that a request came with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid


@dataclass(frozen=True, slots=True)
class Credential:
    """`owner`: the relay key's hash, or `user:<id>`. `policy_id`: the key's own policy, else its principal's.

    `kind` is `key` or `token`; `id` the key's id or the token's `jti`. `principal_kind` is `serviceaccount` or
    `user`. `refusal`: why it may not create anything now (`no_policy`, `policy_disabled`, `project_disabled`,
    `principal_disabled`), empty when it may; reading what exists is always allowed.
    """

    owner: str
    kind: str
    id: str
    principal_kind: str
    principal_id: str
    policy_id: uuid.UUID | None
    project_id: uuid.UUID | None
    team_id: uuid.UUID | None
    refusal: str = ""

    @property
    def is_authenticated(self) -> bool:
        """For DRF, where a credential stands in the place of a user."""
        return True
