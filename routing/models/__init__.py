"""The rows that say who may call what, and through which binding and host key. Terms: docs/glossary.md."""

from routing.models.callers import Project, RelayKey, ServiceAccount, Team, User
from routing.models.catalog import Alias, Binding, Host, HostHeader, HostKey, Model, Pricing, Provider, Rate
from routing.models.policies import Policy, PolicyHostKey, RateLimit, RateLimitRule
from routing.models.tokens import InferenceToken, SigningKey

__all__ = [
    "Alias",
    "Binding",
    "Host",
    "HostHeader",
    "HostKey",
    "InferenceToken",
    "Model",
    "Policy",
    "PolicyHostKey",
    "Pricing",
    "Project",
    "Provider",
    "Rate",
    "RateLimit",
    "RateLimitRule",
    "RelayKey",
    "ServiceAccount",
    "SigningKey",
    "Team",
    "User",
]
