"""Providers, hosts, host keys, models with their aliases and bindings, and prices."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Lower

from relaybatch.ids import uuid7
from routing.models.named import NamedModel

NAME_WITHOUT_SEPARATORS = models.Q(name__regex=r"^[^/@]+$")

_SECRETS = ("env_name", "file_path", "secret_encrypted")


def _only_source(source: str | None, *, of: tuple[str, ...] = ("text", *_SECRETS)) -> models.Q:
    """Exactly one of the columns is filled: `source`, or none of them if it is None."""
    empty = {
        name: models.Q(**({f"{name}__isnull": True} if name == "secret_encrypted" else {name: ""}))
        for name in of
    }
    condition = models.Q()
    for name, is_empty in empty.items():
        condition &= ~is_empty if name == source else is_empty
    return condition


class Meter(models.TextChoices):
    """Four meters that never overlap, and their parts (reasoning of output; two of cache_write)."""

    INPUT = "input"
    CACHE_READ = "cache_read"
    CACHE_WRITE = "cache_write"
    OUTPUT = "output"
    REASONING = "reasoning"
    CACHE_WRITE_5M = "cache_write_5m"
    CACHE_WRITE_1H = "cache_write_1h"


class Provider(NamedModel):
    class Meta(NamedModel.Meta):
        constraints = [models.CheckConstraint(condition=NAME_WITHOUT_SEPARATORS, name="provider_name_form")]


class Host(NamedModel):
    """An upstream. `base_url`: as `routing.hosts.url` accepts it. `query`: parameters added to each URL.

    `auth`: one of AUTH_SCHEMES, the name of another header, or empty for the adapter's own.
    `stream_usage`: whether live streams may be sent `stream_options`, which some servers reject.
    """

    base_url = models.CharField(max_length=500)
    query = models.JSONField(default=dict, db_default={}, blank=True)
    auth = models.CharField(max_length=200, default="", db_default="", blank=True)
    stream_usage = models.BooleanField(default=True, db_default=True)

    class Meta(NamedModel.Meta):
        constraints = [models.CheckConstraint(condition=NAME_WITHOUT_SEPARATORS, name="host_name_form")]


class HostHeader(models.Model):
    """A header sent with each call to a host. Its value is `text`, or a secret from one of three sources."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="headers")
    name = models.CharField(max_length=200)
    text = models.TextField(blank=True, default="")
    env_name = models.CharField(max_length=200, blank=True, default="")
    file_path = models.CharField(max_length=1000, blank=True, default="")
    secret_encrypted = models.BinaryField(null=True, editable=False)

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(Lower("name"), "host", name="host_header_once"),
            models.CheckConstraint(
                condition=_only_source("text")
                | _only_source("env_name")
                | _only_source("file_path")
                | _only_source("secret_encrypted"),
                name="host_header_has_one_source",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class HostKey(NamedModel):
    """Our key at an upstream. The secret is in an environment variable, in a file or stored encrypted.

    It has at most one of these sources, and none where the host's `auth` is `none`.
    """

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="host_keys")
    env_name = models.CharField(max_length=200, blank=True, default="")
    file_path = models.CharField(max_length=1000, blank=True, default="", db_default="")
    secret_encrypted = models.BinaryField(null=True, editable=False)
    rate_limit = models.ForeignKey("RateLimit", on_delete=models.PROTECT, null=True, blank=True)

    class Meta(NamedModel.Meta):
        constraints = [
            models.CheckConstraint(
                condition=_only_source("env_name", of=_SECRETS)
                | _only_source("file_path", of=_SECRETS)
                | _only_source("secret_encrypted", of=_SECRETS)
                | _only_source(None, of=_SECRETS),
                name="host_key_has_one_source_at_most",
            )
        ]


class Pricing(NamedModel):
    """Prices by meter. `version` is incremented with each change; usage events keep the version they were priced at."""

    currency = models.CharField(max_length=3)
    version = models.PositiveIntegerField(default=1)

    class Meta(NamedModel.Meta):
        verbose_name_plural = "pricing"


class Rate(models.Model):
    """`rate_nanos`: nano-units of the currency per million tokens (an amount of 2.50 is 2,500,000,000).

    The tier with the highest `above_tokens` that is at most the prompt's tokens prices the whole count.
    """

    pricing = models.ForeignKey(Pricing, on_delete=models.CASCADE, related_name="rates")
    meter = models.CharField(max_length=20, choices=Meter.choices)
    rate_nanos = models.BigIntegerField(validators=[MinValueValidator(0)])
    above_tokens = models.BigIntegerField(default=0, validators=[MinValueValidator(0)])

    class Meta:
        ordering = ["meter", "above_tokens", "id"]
        constraints = [
            models.UniqueConstraint(fields=["pricing", "meter", "above_tokens"], name="rate_tier_once"),
            models.CheckConstraint(
                condition=models.Q(rate_nanos__gte=0, above_tokens__gte=0), name="rate_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.meter} above {self.above_tokens}"


class Model(NamedModel):
    """A model that callers can request. Its name is unique over all providers: any text of 1-300 characters."""

    name = models.CharField(max_length=300, unique=True)
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="models")

    bindings: models.Manager[Binding]


class Alias(models.Model):
    """Another name of a model. With `wildcard`, `pattern` is a prefix (`gpt-4o-2024*` is stored without `*`)."""

    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="aliases")
    pattern = models.CharField(max_length=300)
    wildcard = models.BooleanField(default=False)

    class Meta:
        ordering = ["pattern", "id"]
        verbose_name_plural = "aliases"
        constraints = [models.UniqueConstraint(fields=["pattern", "wildcard"], name="alias_once")]

    def __str__(self) -> str:
        return f"{self.pattern}*" if self.wildcard else self.pattern


class Binding(models.Model):
    """One way to call a model: the host, the adapter, the upstream's own name for it, and a price list."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="bindings")
    position = models.PositiveIntegerField(default=0)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="bindings")
    adapter = models.CharField(max_length=40)
    upstream_name = models.CharField(max_length=300, blank=True, default="")
    pricing = models.ForeignKey(Pricing, on_delete=models.PROTECT, null=True, blank=True)
    enabled = models.BooleanField(default=True)

    class Meta:
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return f"{self.model}, {self.adapter} #{self.position}"
