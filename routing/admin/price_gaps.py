"""The base class of pages that report unpriced calls: on the page, and as warnings when it is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages

from routing.admin.named_rows import NamedRowAdmin
from routing.catalog.price_gaps import find_price_gaps

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from routing.models import Binding


class PriceGapAdmin(NamedRowAdmin):
    readonly_fields: ClassVar[Any] = ("unpriced",)

    def bindings_of(self, row: Any) -> QuerySet[Binding]:
        """The bindings whose prices the row is part of."""
        raise NotImplementedError

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: Any) -> None:
        super().save_related(request, form, formsets, change)
        for gap in find_price_gaps(self.bindings_of(form.instance)):
            messages.warning(request, gap)

    @admin.display(description="left unpriced")
    def unpriced(self, row: Any) -> str:
        gaps = find_price_gaps(self.bindings_of(row)) if row.pk else []
        return "\n".join(gaps) or "nothing"
