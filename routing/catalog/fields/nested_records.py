"""The records within rows of a catalog file: rates, rules, bindings, included usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

from routing.adapters import ADAPTERS
from routing.catalog.fields import validators
from routing.catalog.fields.columns import Column
from routing.catalog.fields.parsers import amount, boolean, choice, integer, record, reference, text
from routing.catalog.fields.records import Field
from routing.models import RateLimitRule
from routing.models.catalog import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE_METERS = ("requests", "concurrency", "tokens", *(f"tokens.{meter}" for meter in Meter.values))
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1


def _currency(value: str) -> str:
    if validators.currency(value) != settings.RELAY_CURRENCY:
        raise ValueError(f"expected {settings.RELAY_CURRENCY}, which RELAY_CURRENCY says is counted here")
    return value


def _check_window(rule: dict[str, Any]) -> Iterator[str]:
    if not rule["enabled"]:
        return
    if rule["meter"] == "concurrency":
        if rule["window_seconds"] is not None or rule["strategy"]:
            yield "concurrency counts what runs now: it takes no window_seconds and no strategy"
    elif rule["window_seconds"] is None or not rule["strategy"]:
        yield f"{rule['meter']} needs window_seconds and strategy"


def currency_field() -> Field:
    return Field("currency", text(_currency), default=settings.RELAY_CURRENCY, column=Column("currency"))


_ENABLED = Field("enabled", boolean, default=True)
RATE = record(
    Field("meter", choice(Meter.values), required=True),
    Field("per_million", amount, required=True, value_key="rate_nanos"),
    Field("above_tokens", integer(minimum=0, maximum=_MAX_INT64), default=0),
    _ENABLED,
)
RULE = record(
    Field("meter", choice(RULE_METERS), required=True),
    Field("amount", integer(minimum=1, maximum=_MAX_INT64), required=True),
    Field("window_seconds", integer(minimum=1, maximum=_MAX_INT32)),
    Field("strategy", choice(RateLimitRule.Strategy.values), default=""),
    _ENABLED,
    check=_check_window,
)
BINDING = record(
    Field("host", reference("hosts"), required=True),
    Field("adapter", choice(ADAPTERS), required=True),
    Field("upstream_name", text(validators.model_name), default=""),
    Field("pricing", reference("pricing")),
    _ENABLED,
)
INCLUDED_USAGE = record(
    Field("amount", amount, required=True),
    currency_field(),
    Field("per", choice(["month"]), default="month"),
    Field("unpriced_closes", boolean, default=False),
)


# Two entries of a list with the same identity are reported as given twice.
def binding_identity(value: dict[str, Any]) -> tuple[Any, ...]:
    return value["host"], value["adapter"], value["upstream_name"]


def rate_identity(value: dict[str, Any]) -> tuple[Any, ...]:
    return value["meter"], value["above_tokens"], value["enabled"]


def rule_identity(value: dict[str, Any]) -> tuple[Any, ...]:
    return value["meter"], value["window_seconds"], value["strategy"], value["enabled"]
