"""Records inside the rows of a catalog file: rates, rules, bindings, included usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

from routing.adapters import ADAPTERS
from routing.catalog import validators
from routing.catalog.columns import Column
from routing.catalog.fields import Field
from routing.catalog.parsers import amount, choice, record, reference, text, truth, whole
from routing.models import RateLimitRule
from routing.models.catalog import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE_METERS = ("requests", "concurrency", "tokens", *(f"tokens.{meter}" for meter in Meter.values))
_POSITIVE_INTEGER = 2**31 - 1
_BIG_INTEGER = 2**63 - 1


def _currency(value: str) -> str:
    if validators.currency(value) != settings.RELAY_CURRENCY:
        raise ValueError(f"expected {settings.RELAY_CURRENCY}, which RELAY_CURRENCY says is counted here")
    return value


def _window_fits(rule: dict[str, Any]) -> Iterator[str]:
    if not rule["enabled"]:
        return
    if rule["meter"] == "concurrency":
        if rule["window_seconds"] is not None or rule["strategy"]:
            yield "concurrency counts what runs now: it takes no window_seconds and no strategy"
    elif rule["window_seconds"] is None or not rule["strategy"]:
        yield f"{rule['meter']} needs window_seconds and strategy"


def currency_field() -> Field:
    return Field("currency", text(_currency), default=settings.RELAY_CURRENCY, column=Column("currency"))


_SWITCH = Field("enabled", truth, default=True)
RATE = record(
    Field("meter", choice(Meter.values), required=True),
    Field("per_million", amount, required=True, to="rate_nanos"),
    Field("above_tokens", whole(minimum=0, maximum=_BIG_INTEGER), default=0),
    _SWITCH,
)
RULE = record(
    Field("meter", choice(RULE_METERS), required=True),
    Field("amount", whole(minimum=1, maximum=_BIG_INTEGER), required=True),
    Field("window_seconds", whole(minimum=1, maximum=_POSITIVE_INTEGER)),
    Field("strategy", choice(RateLimitRule.Strategy.values), default=""),
    _SWITCH,
    check=_window_fits,
)
BINDING = record(
    Field("host", reference("hosts"), required=True),
    Field("adapter", choice(ADAPTERS), required=True),
    Field("upstream_name", text(validators.model_name), default=""),
    Field("pricing", reference("pricing")),
    _SWITCH,
)
INCLUDED = record(
    Field("amount", amount, required=True),
    currency_field(),
    Field("per", choice(["month"]), default="month"),
    Field("unpriced_closes", truth, default=False),
)


def called(value: dict[str, Any]) -> tuple[Any, ...]:
    return value["host"], value["adapter"], value["upstream_name"]


def tier(value: dict[str, Any]) -> tuple[Any, ...]:
    return value["meter"], value["above_tokens"], value["enabled"]


def window(value: dict[str, Any]) -> tuple[Any, ...]:
    return value["meter"], value["window_seconds"], value["strategy"], value["enabled"]
