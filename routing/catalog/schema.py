"""Everything that a catalog file may hold: an entry for each kind of row, in the order in which they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from routing.catalog.fields import validators
from routing.catalog.fields.columns import (
    ChildRows,
    ChildRowsWithSecret,
    Column,
    EncryptedSecret,
    IncludedUsage,
    Reference,
    SecretSource,
    TextList,
)
from routing.catalog.fields.host_fields import auth, headers, query, secret_source
from routing.catalog.fields.kinds import Kind
from routing.catalog.fields.nested_records import (
    BINDING,
    INCLUDED_USAGE,
    RATE,
    RULE,
    binding_identity,
    currency_field,
    rate_identity,
    rule_identity,
)
from routing.catalog.fields.parsers import (
    alias,
    boolean,
    choice,
    grant,
    list_of,
    list_of_records,
    reference,
    text,
    without_disabled,
)
from routing.catalog.fields.records import Field
from routing.models import (
    Alias,
    Binding,
    Host,
    HostHeader,
    HostKey,
    Model,
    Policy,
    PolicyHostKey,
    Pricing,
    Project,
    Provider,
    Rate,
    RateLimit,
    RateLimitRule,
    ServiceAccount,
    Team,
    User,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db import models


def _check_one_source(host_key: dict[str, Any]) -> Iterator[str]:
    if host_key["value_from"] != ("", "") and host_key["value"] is not None:
        yield "expected value_from or value, one of them"


def _increment_version(pricing: Any, changed: set[str]) -> tuple[str, ...]:
    """Usage events keep the version that they were priced at, so new rates or another currency need a new version."""
    if not changed & {"rates", "currency"}:
        return ()
    pricing.version += 1
    return ("version",)


def _children(
    accessor: str,
    model: type[models.Model],
    parent: str,
    *attributes: str,
    ordered: bool = False,
    **references: str,
) -> ChildRows:
    return ChildRows(
        accessor, model=model, parent=parent, attributes=attributes, references=references, ordered=ordered
    )


KINDS = (
    Kind(
        "rate_limits",
        "rate_limit",
        RateLimit,
        (
            Field(
                "rules",
                without_disabled(list_of(RULE, unique_by=rule_identity)),
                default=(),
                column=_children(
                    "rules",
                    RateLimitRule,
                    "rate_limit",
                    "meter",
                    "amount",
                    "window_seconds",
                    "strategy",
                    ordered=True,
                ),
            ),
        ),
    ),
    Kind("providers", "provider", Provider, validate_name=validators.name_without_separators),
    Kind(
        "hosts",
        "host",
        Host,
        (
            Field("base_url", text(validators.base_url), required=True, column=Column("base_url")),
            Field("query", query, default={}, column=Column("query")),
            Field(
                "headers",
                headers,
                default=(),
                column=ChildRowsWithSecret(
                    "headers",
                    model=HostHeader,
                    parent="host",
                    attributes=("name", "text", "env_name", "file_path"),
                    encrypted_attribute="secret_encrypted",
                    plain_key="secret",
                ),
            ),
            Field("auth", auth, default="", column=Column("auth")),
            Field("stream_usage", boolean, default=True, column=Column("stream_usage")),
        ),
        validate_name=validators.name_without_separators,
    ),
    Kind(
        "host_keys",
        "host_key",
        HostKey,
        (
            Field("host", reference("hosts"), required=True, column=Reference("host", "hosts")),
            Field(
                "value_from", secret_source, default=("", ""), column=SecretSource("env_name", "file_path")
            ),
            Field("value", text(validators.secret), column=EncryptedSecret("secret_encrypted")),
            Field("rate_limit", reference("rate_limits"), column=Reference("rate_limit", "rate_limits")),
        ),
        check=_check_one_source,
    ),
    Kind(
        "pricing",
        "pricing",
        Pricing,
        (
            currency_field(),
            Field(
                "rates",
                without_disabled(list_of(RATE, unique_by=rate_identity)),
                default=(),
                column=_children("rates", Rate, "pricing", "meter", "above_tokens", "rate_nanos"),
            ),
        ),
        on_change=_increment_version,
    ),
    Kind(
        "models",
        "model",
        Model,
        (
            Field(
                "provider", reference("providers"), required=True, column=Reference("provider", "providers")
            ),
            Field(
                "aliases",
                list_of(alias, unique_by=None),
                default=(),
                column=_children("aliases", Alias, "model", "pattern", "wildcard"),
            ),
            Field(
                "bindings",
                list_of(BINDING, unique_by=binding_identity),
                default=(),
                column=_children(
                    "bindings",
                    Binding,
                    "model",
                    "host",
                    "adapter",
                    "upstream_name",
                    "pricing",
                    "enabled",
                    ordered=True,
                    host="hosts",
                    pricing="pricing",
                ),
            ),
        ),
        validate_name=validators.model_name,
    ),
    Kind(
        "policies",
        "policy",
        Policy,
        (
            Field("models", list_of(grant), default=(), column=TextList("models_granted")),
            Field(
                "host_keys",
                list_of_records("host_key", list_of(reference("host_keys"))),
                default=(),
                column=_children(
                    "policyhostkey_set",
                    PolicyHostKey,
                    "policy",
                    "host_key",
                    ordered=True,
                    host_key="host_keys",
                ),
            ),
            Field(
                "key_selection",
                choice(Policy.Selection.values),
                default="prioritized",
                column=Column("key_selection"),
            ),
            Field("rate_limit", reference("rate_limits"), column=Reference("rate_limit", "rate_limits")),
        ),
    ),
    Kind("teams", "team", Team),
    Kind(
        "projects",
        "project",
        Project,
        (
            Field("team", reference("teams"), required=True, column=Reference("team", "teams")),
            Field("included_usage", INCLUDED_USAGE, column=IncludedUsage("included_nanos")),
        ),
    ),
    Kind(
        "service_accounts",
        "service_account",
        ServiceAccount,
        (
            Field("project", reference("projects"), required=True, column=Reference("project", "projects")),
            Field("policy", reference("policies"), column=Reference("policy", "policies")),
        ),
    ),
    Kind(
        "users",
        "user",
        User,
        (
            Field("project", reference("projects"), column=Reference("project", "projects")),
            Field("policy", reference("policies"), column=Reference("policy", "policies")),
        ),
        validate_name=validators.username,
        name_attribute="username",
        enabled_attribute="is_active",
        prepare_new=lambda user: user.set_unusable_password(),
    ),
)
