"""Gaps in the prices: meters that enabled bindings can report and their price lists have no rate for.

Unpriced calls count for no allowance, so gaps are reported wherever prices are declared.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from django.conf import settings

from routing.adapters import ADAPTERS
from routing.catalog.problems import format_name
from routing.meters import WHOLES
from routing.models import Binding, Rate

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from django.db.models import QuerySet

    from routing.models import Pricing

MAX_NAMED_MODELS = 5
_REMEDY = "add a rate for each (0 if it costs nothing), or calls that report it are unpriced and count for no allowance"


def find_price_gaps(bindings: QuerySet[Binding] | None = None) -> list[str]:
    """A sentence for each price list and adapter with missing rates, and one for all bindings without a price list.

    Only enabled bindings of an enabled host, model and provider count. A price list that is disabled, or in another
    currency than the deployment's, counts as missing. A part needs no rate of its own: it is priced by its whole's.
    """
    priced, unpriced = _models_by_pricing(Binding.objects.all() if bindings is None else bindings)
    rates = _meters_with_a_rate({pricing_id for _, _, pricing_id in priced})
    gaps = [
        _missing_rates_message(name, adapter, missing, models)
        for (name, adapter, pricing_id), models in sorted(priced.items())
        if (missing := _wholes_of(adapter) - rates[pricing_id])
    ]
    return gaps + ([_no_pricing_message(unpriced)] if unpriced else [])


def _models_by_pricing(
    bindings: QuerySet[Binding],
) -> tuple[dict[tuple[str, str, uuid.UUID], list[str]], list[str]]:
    """Names of the models that can be called, by `(price list's name, adapter, its id)`; and of those without one."""
    enabled = bindings.filter(
        enabled=True, host__enabled=True, model__enabled=True, model__provider__enabled=True
    )
    priced: dict[tuple[str, str, uuid.UUID], list[str]] = defaultdict(list)
    unpriced: list[str] = []
    for binding in enabled.select_related("model", "pricing").order_by("model__name", "position"):
        pricing = binding.pricing
        if pricing is not None and _is_effective(pricing):
            priced[pricing.name, binding.adapter, pricing.pk].append(binding.model.name)
        else:
            unpriced.append(binding.model.name)
    return priced, unpriced


def _is_effective(pricing: Pricing) -> bool:
    return pricing.enabled and pricing.currency == settings.RELAY_CURRENCY


def _wholes_of(adapter: str) -> set[str]:
    known = ADAPTERS.get(adapter)
    return set(known.meters).intersection(WHOLES) if known else set()


def _meters_with_a_rate(pricing_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, set[str]]:
    """By price list. Only rates from 0 tokens on count: a higher tier prices only calls that reach it."""
    meters: dict[uuid.UUID, set[str]] = defaultdict(set)
    for pricing_id, meter in Rate.objects.filter(pricing__in=pricing_ids, above_tokens=0).values_list(
        "pricing_id", "meter"
    ):
        meters[pricing_id].add(meter)
    return meters


def _missing_rates_message(pricing: str, adapter: str, missing: set[str], models: list[str]) -> str:
    meters = ", ".join(meter for meter in WHOLES if meter in missing)
    return (
        f"pricing {format_name(pricing)} has no rate from 0 tokens on for {meters}, which the adapter {adapter} of "
        f"{_format_models(models)} can report: {_REMEDY}"
    )


def _no_pricing_message(models: list[str]) -> str:
    return (
        f"bindings of {_format_models(models)} have no pricing, a disabled one, or one in another currency: "
        "their calls are unpriced and count for no allowance; give them a pricing if they are to be counted"
    )


def _format_models(models: list[str]) -> str:
    names = list(dict.fromkeys(models))
    more = f" and {len(names) - MAX_NAMED_MODELS} more" if len(names) > MAX_NAMED_MODELS else ""
    noun = "model" if len(names) == 1 else "models"
    return f"{noun} {', '.join(format_name(name) for name in names[:MAX_NAMED_MODELS])}{more}"
