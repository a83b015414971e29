"""What is deleted with a row, or lost by it, is decided for each foreign key: nothing may be wider afterwards."""

from __future__ import annotations

from django.apps import apps
from django.db.models import DO_NOTHING, PROTECT, ForeignKey

from routing.models.callers import protect_keys_that_may_call

# Why it is safe that the row of the key's other end goes. All others are protected.
SAFE = {
    ("routing.Alias.model", "CASCADE"): "a name that leads nowhere",
    ("routing.Binding.model", "CASCADE"): "a way to a model that is gone",
    ("routing.HostHeader.host", "CASCADE"): "a part of its host",
    ("routing.HostKey.host", "CASCADE"): "a secret of a host that is gone",
    ("routing.InferenceToken.project", "SET_NULL"): "a token without its project may create nothing",
    ("routing.InferenceToken.user", "CASCADE"): "a token without its row is unknown",
    ("routing.PolicyHostKey.host_key", "CASCADE"): "the policy reaches less",
    ("routing.PolicyHostKey.policy", "CASCADE"): "a part of its policy",
    ("routing.Rate.pricing", "CASCADE"): "a part of its price list, which is protected while it is used",
    (
        "routing.RateLimitRule.rate_limit",
        "CASCADE",
    ): "a part of its limit, which is protected while it is used",
    ("routing.RelayKey.service_account", "CASCADE"): "a key without its row is unknown",
    ("routing.RelayKey.user", "CASCADE"): "a key without its row is unknown",
    ("routing.ServiceAccount.policy", "SET_NULL"): "an account without a policy may create nothing",
    ("routing.User.policy", "SET_NULL"): "a user without a policy may create nothing",
    ("batches.IdempotencyKey.owner", "CASCADE"): "owners with batches are protected",
    ("batches.KeylessCreate.owner", "CASCADE"): "owners with batches are protected",
}


def test_each_foreign_key_is_protected_or_known_to_widen_nothing() -> None:
    deciding = (PROTECT, DO_NOTHING, protect_keys_that_may_call)
    found = {
        (f"{model._meta.label}.{field.name}", getattr(field.remote_field.on_delete, "__name__", ""))
        for app in ("routing", "usage", "batches")
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.get_fields()
        if isinstance(field, ForeignKey) and field.remote_field.on_delete not in deciding
    }
    assert found == set(SAFE)
