"""Where calls would go unpriced: what enabled bindings can report, and their price lists have no rate for.

Whatever is unpriced counts for no allowance, so that an operator is told of it where prices are declared.
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


def price_gaps(bindings: QuerySet[Binding] | None = None) -> list[str]:
    """A sentence for each price list and adapter that do not fit, and one for bindings without a price list.

    Of bindings that are enabled, on a host and of a model and a provider that are. A price list that is disabled, or in
    another currency than the deployment's, prices nothing, as if there was none. A part needs no rate of its own: its
    whole's prices it.
    """
    found = (Binding.objects.all() if bindings is None else bindings).filter(
        enabled=True, host__enabled=True, model__enabled=True, model__provider__enabled=True
    )
    models: dict[tuple[uuid.UUID | None, str, str], list[str]] = defaultdict(list)
    for binding in found.select_related("model", "pricing").order_by("model__name", "position"):
        pricing = binding.pricing if binding.pricing and _is_effective(binding.pricing) else None
        key = (pricing.pk, pricing.name, binding.adapter) if pricing else (None, "", "")
        models[key].append(binding.model.name)
    rates = _meters_with_a_rate({key[0] for key in models} - {None})
    unpriced = models.pop((None, "", ""), [])
    gaps = [
        _missing_rates_message(name, adapter, lacking, names)
        for (pricing_id, name, adapter), names in sorted(models.items(), key=lambda entry: entry[0][1:])
        if (lacking := _wholes_of(adapter) - rates[pricing_id])
    ]
    return gaps + ([_no_pricing_message(unpriced)] if unpriced else [])


def _is_effective(pricing: Pricing) -> bool:
    return pricing.enabled and pricing.currency == settings.RELAY_CURRENCY


def _wholes_of(adapter: str) -> set[str]:
    known = ADAPTERS.get(adapter)
    return set(known.meters).intersection(WHOLES) if known else set()


def _meters_with_a_rate(pricing_ids: Iterable[uuid.UUID | None]) -> dict[uuid.UUID | None, set[str]]:
    """That begins at 0 tokens: a tier above prices only what reaches it."""
    found: dict[uuid.UUID | None, set[str]] = defaultdict(set)
    for pricing_id, meter in Rate.objects.filter(pricing__in=pricing_ids, above_tokens=0).values_list(
        "pricing_id", "meter"
    ):
        found[pricing_id].add(meter)
    return found


def _missing_rates_message(pricing: str, adapter: str, lacking: set[str], models: list[str]) -> str:
    meters = ", ".join(meter for meter in WHOLES if meter in lacking)
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
    word = "model" if len(names) == 1 else "models"
    return f"{word} {', '.join(format_name(name) for name in names[:MAX_NAMED_MODELS])}{more}"
