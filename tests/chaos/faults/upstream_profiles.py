"""Response profiles of the upstream: kinds of responses (deployment/upstream_responses.py) with their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# While no other profile is active: mostly good responses.
DEFAULT_PROFILE: Mapping[str, float] = {
    "well": 90,
    "500": 2,
    "429": 2,
    "cut": 1,
    "closed": 1,
    "400": 1,
    "401": 1,
    "403": 1,
    "slow": 2,
    "no usage": 1,
    "interim": 2,
    "interim earlier": 3,
    "interim alone": 0.5,
    "junk behind": 0.5,
    "twice": 1,
    "twice, later": 2,
    "longer than it says": 0.5,
    "many headers": 0.5,
}
UPSTREAM_PROFILES: Mapping[str, Mapping[str, float]] = {
    "slow": {"slow": 8, "well": 2},
    "failing": {"500": 5, "502": 2, "529": 2, "well": 2},
    "busy": {"429": 5, "well": 3},
    "refusing": {"401": 3, "403": 3, "409": 1, "400": 1, "well": 3},
    "cutting": {"cut": 3, "reset": 2, "closed": 2, "well": 2},
    "talking nonsense": {"garbage": 3, "list": 1, "no usage": 2, "well": 3},
    "hanging": {"hanging": 5, "well": 3},
    "out of step": {
        "interim": 2,
        "interim earlier": 2,
        "interim alone": 1,
        "interim, then 500": 1,
        "junk behind": 2,
        "twice": 2,
        "twice, later": 2,
        "longer than it says": 1,
        "many headers": 1,
        "well": 6,
    },
}
